import CBOR
public import Documents
import Files
import SystemPackage
import Values

/// Reads a JSON file as an initial state.
public enum DocumentFile {
  /// The reason that a file cannot be read: a sentence for people, with its path.
  public struct Failure: Error, CustomStringConvertible {
    public let description: String
  }

  /// The document that a file holds: any JSON. It hashes with a random seed, which a daemon that begins
  /// with it takes for its own: else all of it would be hashed twice. O(its bytes). Throws `Failure`.
  public static func document(_ path: String) throws -> Document {
    var random = SystemRandomNumberGenerator()
    let seed = HashSeed(random.next())
    return Document(try read(path, seed: seed), seed: seed)
  }

  /// The most bytes of a file: a document takes several times its text in memory.
  static let sizeLimit = 1 << 30

  static func read(
    _ path: String, limit: Int = sizeLimit, seed: HashSeed = .unseeded
  ) throws -> Value {
    let bytes: [UInt8]?
    do throws(Errno) { bytes = try FileDescriptor.contents(of: path, limit: limit) } catch {
      throw Failure(description: "cannot read \(path): \(error)")
    }
    guard let bytes else {
      throw Failure(
        description: "\(path) has more than \(limit) bytes: too many for an initial state")
    }
    do {
      return try JSON.parse(bytes, seed: seed)
    } catch {
      throw Failure(description: "\(path): \(error)")
    }
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
