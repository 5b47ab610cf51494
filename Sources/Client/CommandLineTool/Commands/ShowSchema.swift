import ArgumentParser
import CBOR
import EventLoop
import LockstepClient
import Values

struct ShowSchema: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "What the daemon's state and actions are made of.",
    discussion: """
      The actions are what 'lockstep send' takes. The number behind a field or case is the one by \
      which it travels. Without a terminal, and with --json: the schema as it travels, see wire.md, \
      which is installed in share/doc/lockstep.
      """)

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      guard let schema = client.connection.schema else {
        throw Failure(.refused, "the daemon does not say what its state is made of.")
      }
      let output = Output(options)
      if output.isPretty { return try output.lines(schema.text.escapingControls(keeping: "\n")) }
      try output.line(schema.value)
    }
  }
}

extension Schema {
  /// The schema as the object that is sent on the wire.
  var value: Value {
    var encoder = CBOREncoder()
    encode(into: &encoder)
    let result = Result { () throws(CBORError) in
      try CBORDecoder.read(encoder.bytes) { (decoder) throws(CBORError) in
        try Value(from: &decoder, seed: .unseeded)
      }
    }
    // Invariant: a schema is made of maps with text keys, arrays, text and integers.
    guard case .success(let value) = result else { preconditionFailure("A schema is a value.") }
    return value
  }

  /// The schema for people, much as the types are declared, with the wire number after each field
  /// and case.
  var text: String {
    var lines = ["state   \(state.text)", "action  \(action.text)"]
    for (name, definition) in types.sorted(by: { String.precedes($0.key, $1.key) }) {
      lines.append("")
      switch definition {
      case .structure(let fields):
        lines.append("struct \(name) {")
        lines += Self.numbered(fields.map { ("var \($0.name): \($0.kind.text)", $0.id) })
      case .enumeration(let cases):
        lines.append("enum \(name) {")
        lines += Self.numbered(cases.map { ("case \($0.text)", $0.id) })
      }
      lines.append("}")
    }
    return lines.joined(separator: "\n")
  }

  private static func numbered(_ members: [(text: String, number: Int)]) -> [String] {
    let width = members.map(\.text.count).filter { $0 <= 60 }.max() ?? 0
    return members.map { text, number in
      let space = String(repeating: " ", count: max(0, width - text.count))
      return "  \(text)\(space)  // \(number)"
    }
  }
}

extension Schema.Case {
  /// The case as it is declared: `add(title: String)`.
  var text: String {
    fields.isEmpty ? name : "\(name)(\(fields.map(\.text).joined(separator: ", ")))"
  }
}

extension Schema.Field {
  /// The field as it is declared in a case.
  var text: String { isUnnamed ? kind.text : "\(name): \(kind.text)" }
}

extension Schema.Kind {
  /// The kind as Swift writes it.
  var text: String {
    switch self {
    case .bool: "Bool"
    case .integer: "Int"
    case .unsigned: "UInt"
    case .double: "Double"
    case .text: "String"
    case .bytes: "Bytes"
    case .value: "Value"
    case .path: "Path"
    case .optional(let kind): "\(kind.text)?"
    case .array(let kind): "[\(kind.text)]"
    case .map(let key, let value): "[\(key.text): \(value.text)]"
    case .type(let name): name
    }
  }
}

extension String {
  /// The text with every character escaped that a terminal would act on, except this one.
  func escapingControls(keeping separator: Character) -> String {
    split(separator: separator, omittingEmptySubsequences: false)
      .map(\.escapingControls).joined(separator: String(separator))
  }
}
