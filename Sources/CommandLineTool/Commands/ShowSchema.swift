import ArgumentParser
import CBOR
import LockstepClient
import Values

struct ShowSchema: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "What the daemon's state and actions are made of.",
    discussion: "The actions are what 'lockstep send' takes.")

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      guard let schema = client.store.schema else {
        throw Failure(.refused, "the daemon does not say what its state is made of.")
      }
      let output = Output(options)
      if output.isPretty { return try output.lines(schema.text.escapingControls(keeping: "\n")) }
      try output.line(schema.value)
    }
  }
}

extension Schema {
  /// The schema as the object that travels.
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

  /// The schema for people, a line for each field and case.
  var text: String {
    var lines = ["state   \(state.text)", "action  \(action.text)"]
    for (name, definition) in types.sorted(by: { String.precedes($0.key, $1.key) }) {
      switch definition {
      case .structure(let fields):
        lines += ["", "struct \(name)"]
        lines += fields.map { "  \($0.id)  \($0.text)" }
      case .enumeration(let cases):
        lines += ["", "enum \(name)"]
        lines += cases.map { item in
          let fields = item.fields.map(\.text).joined(separator: ", ")
          return "  \(item.id)  \(item.name)" + (fields.isEmpty ? "" : "(\(fields))")
        }
      }
    }
    return lines.joined(separator: "\n")
  }
}

extension Schema.Field {
  fileprivate var text: String { name.isEmpty ? kind.text : "\(name): \(kind.text)" }
}

extension Schema.Kind {
  fileprivate var text: String {
    switch self {
    case .bool: "bool"
    case .integer: "int"
    case .unsigned: "uint"
    case .double: "double"
    case .text: "text"
    case .bytes: "bytes"
    case .value: "value"
    case .path: "path"
    case .optional(let kind): "\(kind.text)?"
    case .array(let kind): "[\(kind.text)]"
    case .map(let key, let value): "[\(key.text): \(value.text)]"
    case .type(let name): name
    }
  }
}

extension String {
  /// The text with everything made visible that a terminal would obey, but this.
  fileprivate func escapingControls(keeping separator: Character) -> String {
    split(separator: separator, omittingEmptySubsequences: false)
      .map(\.escapingControls).joined(separator: String(separator))
  }
}
