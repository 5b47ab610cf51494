import Documents
import Glibc
import Values

/// A JSON file that a document begins with.
enum DocumentFile {
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  static func read(_ path: String) throws -> Value {
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
}
