import Documents
import Foundation
import Values
import Wire

/// The text of transcripts in `Protocols/vectors/sessions.json`.
enum TranscriptText {
  // MARK: Writing

  static func file(_ transcripts: [String]) -> String {
    "{\n  \"transcripts\": [\n" + transcripts.joined(separator: ",\n") + "\n  ]\n}\n"
  }

  static func object(_ scenario: TranscriptScenario, _ steps: [TranscriptStep]) -> String {
    """
        {
          "name": \(quoted(scenario.name)),
          "level": \(quoted(scenario.level)),
          "sentence": \(quoted(scenario.sentence)),
          "steps": [
    \(steps.map(line).joined(separator: ",\n"))
          ]
        }
    """
  }

  private static func quoted(_ text: String) -> String { JSON.text(.text(text)) }

  private static func line(_ step: TranscriptStep) -> String {
    switch step {
    case .client(let item):
      return "        {\"client\": \"\(VectorText.hex(item))\", \"type\": \"\(type(of: item))\"}"
    case .daemon(let item, let mirrors):
      let shown = mirrors.map(text).joined(separator: ",\n           ")
      return """
                {"daemon": "\(VectorText.hex(item))", "type": "\(type(of: item))",
                 "mirrors": [\(shown)]}
        """
    case .happens(let text): return "        {\"happens\": \(quoted(text))}"
    case .closed(let text): return "        {\"closed\": \(quoted(text))}"
    }
  }

  /// The name of a message's type in wire.md.
  private static func type(of item: [UInt8]) -> String {
    TranscriptPair.type(of: item).map { "\($0)" } ?? "unknown"
  }

  private static func text(_ mirror: ShownMirror) -> String {
    let value = mirror.value.map { JSON.text($0, sortedKeys: true) } ?? "{\"$undefined\":true}"
    let position = mirror.position.map { "[\($0.epoch),\($0.run),\($0.revision)]" } ?? "null"
    return "{\"subscription\":\(mirror.subscription),\"position\":\(position),"
      + "\"isCurrent\":\(mirror.isCurrent),\"value\":\(value)}"
  }

  // MARK: Reading

  static func steps(of name: String) throws -> [TranscriptStep] {
    let file = VectorText.folder.appendingPathComponent("sessions.json")
    let whole = try JSON.parse(Array(Data(contentsOf: file)))
    let transcripts = try elements(whole.value(at: ["transcripts"]))
    guard let found = transcripts.first(where: { $0.value(at: ["name"]) == .text(name) }) else {
      throw VectorText.Missing()
    }
    return try elements(found.value(at: ["steps"])).map(step)
  }

  private static func step(_ value: Value) throws -> TranscriptStep {
    if case .text(let hex)? = value.value(at: ["client"]) {
      return .client(try VectorText.bytes(hex))
    }
    if case .text(let hex)? = value.value(at: ["daemon"]) {
      return .daemon(
        try VectorText.bytes(hex), try elements(value.value(at: ["mirrors"])).map(mirror))
    }
    if case .text(let text)? = value.value(at: ["happens"]) { return .happens(text) }
    if case .text(let text)? = value.value(at: ["closed"]) { return .closed(text) }
    throw VectorText.Missing()
  }

  private static func mirror(_ value: Value) throws -> ShownMirror {
    guard let shown = value.value(at: ["value"]) else { throw VectorText.Missing() }
    var position: Position?
    if case .array(let parts)? = value.value(at: ["position"]) {
      let numbers = try parts.map { try number($0) }
      position = Position(epoch: numbers[0], run: numbers[1], revision: numbers[2])
    }
    return ShownMirror(
      subscription: try number(value.value(at: ["subscription"])),
      value: shown.isSame(as: ["$undefined": true]) ? Value?.none : shown, position: position,
      isCurrent: value.value(at: ["isCurrent"]) == true)
  }

  private static func elements(_ value: Value?) throws -> [Value] {
    guard case .array(let elements)? = value else { throw VectorText.Missing() }
    return Array(elements)
  }

  private static func number(_ value: Value?) throws -> UInt64 {
    guard case .integer(let number)? = value, let result = UInt64(exactly: number) else {
      throw VectorText.Missing()
    }
    return result
  }
}
