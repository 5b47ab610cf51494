import CBOR
import Documents
import Testing
import Values

@testable import CommandLineTool

struct OutputTests {
  @Test func `a container is on one line where it fits`() {
    let value: Value = ["b": [1, 2], "a": nil]
    #expect(PrettyWriter.text(value, width: 40, hasColor: false) == #"{"a": null, "b": [1, 2]}"#)
    #expect(
      PrettyWriter.text(value, width: 20, hasColor: false)
        == "{\n  \"a\": null,\n  \"b\": [1, 2]\n}")
    #expect(PrettyWriter.text([], width: 1, hasColor: false) == "[]")
  }

  @Test func `control characters in a text are escaped`() throws {
    let text = "\u{1b}[31m\u{9b}\u{202e}\u{7f}\u{85}é"
    let shown = PrettyWriter.text(.text(text), width: 80, hasColor: false)
    #expect(shown == #""\u001b[31m\u009b\u202e\u007f\u0085é""#)
    #expect(try JSON.parse(shown) == .text(text))
    #expect("a\nb".escapingControls == "a\\u000ab")
    let line = JSON.text(["b": [1, 2], "a": .text(text)], sortedKeys: true).escapingControls
    #expect(line == #"{"a":"\u001b[31m\u009b\u202e\u007f\u0085é","b":[1,2]}"#)
  }

  @Test func `a table too wide for the terminal becomes blocks`() {
    var table = Table([
      .init(heading: "PID", isNumber: true), .init(heading: "LABEL"), .init(heading: "SCOPES"),
    ])
    table.add(["1", "a\u{1b}", "/a /b /c"])
    table.add(["23", "bb", "-"])
    #expect(
      table.text(width: 40) == "PID  LABEL    SCOPES\n  1  a\\u001b  /a /b /c\n 23  bb       -")
    #expect(table.text(width: 20).hasPrefix("PID     1\nLABEL   a\\u001b\nSCOPES  /a /b /c\n\nPID"))
  }

  @Test func `a long cell is cut where its column permits, and the columns stay aligned`() {
    var table = Table([
      .init(heading: "PID", isNumber: true), .init(heading: "LABEL", mayBeCut: true),
      .init(heading: "CAUSE"), .init(heading: "MESSAGE", mayBeCut: true),
    ])
    table.add(["1", String(repeating: "x", count: 64), "limit", String(repeating: "y", count: 200)])
    table.add(["2", "short", "done", "goodbye"])
    for width in [40, 60, 80, 200] {
      let lines = table.text(width: width).split(separator: "\n")
      #expect(lines.count == 3)
      #expect(lines.allSatisfy { $0.count <= width })
      #expect(lines[1].contains("…  limit  ") || width == 200, "\(lines[1])")
    }
    #expect(table.text(width: 28).contains("\n\n"), "what cannot be cut far enough is in blocks")
  }

  @Test func `text takes the columns that terminals give it`() {
    #expect(
      ["a", "é", "e\u{301}", "語", "👍🏽", "ｆ", "", "🇩🇪"].map(\.columns) == [1, 1, 1, 2, 2, 2, 0, 2])
    #expect("日本語".cut(to: 5) == "日本…" && "日本語".cut(to: 4) == "日…")
    #expect("日本語".filling(4) == "日… " && "ab".filling(4, isNumber: true) == "  ab")
    #expect("abc".cut(to: 0) == "" && "abc".cut(to: 1) == "…" && "abc".cut(to: 3) == "abc")
  }

  @Test func `a rejection in the log does not shift the columns, and is shown whole`() throws {
    let reason = "the object at the root has no member \"deep\" (at /deep/x/y): nothing to do here"
    let records = try [
      ["sequence": 8, "outcome": .text("rejected: \(reason)"), "action": "set"],
      ["sequence": 9, "outcome": "changed", "action": "set"],
    ].map { (value: Value) in
      try #require(LogRecord(value))
    }
    let output = Output(isTerminal: true, isPretty: true, hasColor: false)
    let lines = LogWriter(output: output, isTree: false).lines(records)
    #expect(lines[0] == "8  -  rejected  -  -  set: \(reason)")
    #expect(lines[1] == "9  -  changed   -  -  set")
  }

  @Test func `what an action changed is below it, and not without end`() throws {
    let record = try #require(LogRecord(["sequence": 8, "outcome": "changed", "action": "set"]))
    let changes = (0..<23).map { PlaceChange(path: ["a", .text("\($0)")], old: 1, new: 2) }
    let output = Output(isTerminal: true, isPretty: true, hasColor: false)
    let shown = LogWriter(output: output, isTree: false)
      .lines([record.with(changes), record.with(nil), record.with([])])
    #expect(shown.count == 3 && shown[1] == "8  -  changed  -  -  set" && shown[2] == shown[1])
    let lines = shown[0].split(separator: "\n")
    #expect(lines[0] == shown[1] && lines[1] == "    ~ /a/0  1 → 2")
    #expect(lines.count == 22 && lines.last == "    … and 3 more")
    #expect(record.with(nil).value.child("changes") == .null)
    #expect(
      record.with([changes[0]]).value.child("changes") == [["path": "/a/0", "from": 1, "to": 2]])
  }

  @Test func `a time is short in a narrow column`() {
    #expect("2026-11-22T21:40:01.123Z".dayAndSecond == "11-22 21:40:01Z")
    #expect("-".dayAndSecond == "-")
  }

  @Test func `metrics are an object of families`() {
    let text = """
      # TYPE lockstep_actions counter
      # HELP lockstep_actions What was done, by name.
      lockstep_actions_total{action="a\\"b\\\\",outcome="x,}"} 3
      lockstep_actions_total{} 4.5 1700000000
      # TYPE lockstep_clients gauge
      lockstep_clients 1
      # EOF
      """
    #expect(
      MetricFamilies.value(of: text) == [
        "lockstep_actions": [
          "help": "What was done, by name.", "type": "counter",
          "samples": [
            [
              "labels": ["action": "a\"b\\", "outcome": "x,}"], "name": "lockstep_actions_total",
              "value": 3,
            ],
            ["labels": [:], "name": "lockstep_actions_total", "value": .double(4.5)],
          ],
        ],
        "lockstep_clients": [
          "type": "gauge",
          "samples": [["labels": [:], "name": "lockstep_clients", "value": 1]],
        ],
      ])
    #expect(MetricFamilies.value(of: "x{a=\"b\n") == [:])
  }

  @Test func `numbers are formatted for people`() {
    #expect(1.005.fixed(1) == "1.0")
    #expect((-0.04).fixed(1) == "0.0")
    #expect(12.0.fixed(0) == "12")
    #expect(Duration.milliseconds(300).formatted == "300 ms")
    #expect(Duration.microseconds(1250).formatted == "1.25 ms")
    #expect(Duration.seconds(2).formatted == "2 s")
    #expect(UInt64(1_234_567).grouped == "1,234,567")
    #expect(UInt64(31_400_000).asBytes == "31.4 MB")
  }

  @Test func `quantiles are latencies that were measured`() {
    var latencies = Latencies()
    #expect(latencies.quantile(0.5) == .zero)
    for time in 1...100 { latencies.add(.microseconds(time)) }
    #expect(latencies.quantile(0.5) == .microseconds(50))
    #expect(latencies.quantile(0.99) == .microseconds(99))
    #expect(latencies.quantile(1) == .microseconds(100))
  }

  @Test func `a progress bar fits the width`() {
    for width in 0...120 {
      let line = ProgressBar.line("sending", 15_000_000, 30_000_000, width: width)
      #expect(line.count <= max(0, width - 1))
    }
    #expect(ProgressBar.line("sending", 1, 2, width: 20) == "50 %")
    let line = ProgressBar.line("sending", 1, 2, width: 50)
    #expect(line == "sending [###########------------] 50 % of 2 bytes")
  }

  @Test func `deterministic CBOR sorts keys as RFC 8949 says`() {
    #expect(
      DeterministicCBOR.bytes(["aa": 1, "b": [nil], "a": 2])
        == [0xa3, 0x61, 0x61, 2, 0x61, 0x62, 0x81, 0xf6, 0x62, 0x61, 0x61, 1])
  }
}
