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
    #expect(
      PrettyWriter.text(value, width: .max, hasColor: false, spaces: false)
        == #"{"a":null,"b":[1,2]}"#)
    #expect(PrettyWriter.text([], width: 1, hasColor: false) == "[]")
  }

  @Test func `a terminal obeys no text`() throws {
    let text = "\u{1b}[31m\u{9b}\u{202e}\u{7f}\u{85}é"
    let shown = PrettyWriter.text(.text(text), width: 80, hasColor: false)
    #expect(shown == #""\u001b[31m\u009b\u202e\u007f\u0085é""#)
    #expect(try JSON.parse(shown) == .text(text))
    #expect("a\nb".escapingControls == "a\\u000ab")
  }

  @Test func `a table gives way to blocks`() {
    var table = Table([
      .init(heading: "PID", isNumber: true), .init(heading: "LABEL"), .init(heading: "SCOPES"),
    ])
    table.add(["1", "a\u{1b}", "/a /b /c"])
    table.add(["23", "bb", "-"])
    #expect(
      table.text(width: 40) == "PID  LABEL    SCOPES\n  1  a\\u001b  /a /b /c\n 23  bb       -")
    #expect(table.text(width: 20).hasPrefix("PID     1\nLABEL   a\\u001b\nSCOPES  /a /b /c\n\nPID"))
  }

  @Test func `numbers are for people`() {
    #expect(1.005.fixed(1) == "1.0")
    #expect((-0.04).fixed(1) == "0.0")
    #expect(12.0.fixed(0) == "12")
    #expect(Duration.milliseconds(300).formatted == "300 ms")
    #expect(Duration.microseconds(1250).formatted == "1.25 ms")
    #expect(Duration.seconds(2).formatted == "2 s")
    #expect(UInt64(1_234_567).grouped == "1,234,567")
    #expect(UInt64(31_400_000).asBytes == "31.4 MB")
  }

  @Test func `quantiles are times that were taken`() {
    var latencies = Latencies()
    #expect(latencies.quantile(0.5) == .zero)
    for time in 1...100 { latencies.add(.microseconds(time)) }
    #expect(latencies.quantile(0.5) == .microseconds(50))
    #expect(latencies.quantile(0.99) == .microseconds(99))
    #expect(latencies.quantile(1) == .microseconds(100))
  }

  @Test func `a progress bar fits`() {
    for width in 0...120 {
      let line = ProgressBar.line("sending", 15_000_000, 30_000_000, width: width)
      #expect(line.count <= max(0, width - 1))
    }
    #expect(ProgressBar.line("sending", 1, 2, width: 20) == "50 %")
    let line = ProgressBar.line("sending", 1, 2, width: 50)
    #expect(line == "sending [###########------------] 50 % of 2 bytes")
  }

  @Test func `deterministic CBOR sorts as RFC 8949 says`() {
    #expect(
      DeterministicCBOR.bytes(["aa": 1, "b": [nil], "a": 2])
        == [0xa3, 0x61, 0x61, 2, 0x61, 0x62, 0x81, 0xf6, 0x62, 0x61, 0x61, 1])
  }
}
