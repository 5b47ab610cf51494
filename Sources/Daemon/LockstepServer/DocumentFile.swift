import CBOR
public import Documents
import Glibc
import Values

/// Reads a JSON file as an initial state.
public enum DocumentFile {
  /// The reason that a file cannot be read: a sentence for people, with its path.
  public struct Failure: Error, CustomStringConvertible {
    public let description: String
  }

  /// The document that a file holds: any JSON. O(its bytes). Throws `Failure`.
  public static func document(_ path: String) throws -> Document { Document(try read(path)) }

  private static func read(_ path: String) throws -> Value {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(path) }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Glibc.read(descriptor, &part, part.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw failure(path) }
      if count == 0 { break }
      bytes.append(contentsOf: part[..<count])
    }
    do {
      return try JSON.parse(bytes)
    } catch {
      throw Failure(description: "\(path): \(error)")
    }
  }

  private static func failure(_ path: String) -> Failure {
    Failure(description: "cannot read \(path): \(String(cString: strerror(errno)))")
  }

  /// The state that a JSON file describes, by the names of the schema's fields and cases.
  static func read<State: Synchronizable>(
    _ path: String, as type: State.Type
  ) throws -> State {
    let schema = Schema(state: State.self) { State.schemaKind(in: &$0) }
    let value = try read(path)
    do {
      // The JSON form of actions is that of any value of a schema.
      let bytes = try ActionJSON.payload(of: value, schema: schema)
      return try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
        try State(from: &decoder, seed: .unseeded)
      }
    } catch {
      throw Failure(description: "\(path): \(error)")
    }
  }
}
