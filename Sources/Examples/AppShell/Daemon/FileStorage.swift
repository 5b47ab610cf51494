import AppShellFeature
import Glibc
import Lockstep

extension Storage {
  /// A file that holds the state as CBOR.
  static func file(at path: String) -> Storage {
    let file = FileStorage(path: path)
    return Storage(load: { try await file.load() }, save: { try await file.save($0) })
  }
}

/// Reads and writes one file, one operation after the other.
private actor FileStorage {
  private let path: String

  init(path: String) { self.path = path }

  func load() throws -> AppState? {
    guard let file = fopen(path, "re") else {
      if errno == ENOENT { return nil }
      throw FileError("cannot read \(path)")
    }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 4096)
    while case let count = fread(&part, 1, part.count, file), count > 0 {
      bytes += part[..<count]
    }
    return try AppState(cbor: bytes)
  }

  /// Replace the file atomically, so that a reader sees a whole state.
  func save(_ state: AppState) throws {
    try Task.checkCancellation()
    let bytes = state.cbor
    let new = path + ".new"
    guard let file = fopen(new, "we") else { throw FileError("cannot write \(new)") }
    let written = fwrite(bytes, 1, bytes.count, file)
    guard fclose(file) == 0, written == bytes.count, rename(new, path) == 0 else {
      throw FileError("cannot write \(path)")
    }
  }
}

private struct FileError: Error, CustomStringConvertible {
  let description: String

  init(_ what: String) { description = "\(what): \(String(cString: strerror(errno)))" }
}

extension AppState {
  fileprivate var cbor: [UInt8] {
    var encoder = CBOREncoder()
    encode(into: &encoder)
    return encoder.bytes
  }

  fileprivate init(cbor bytes: [UInt8]) throws {
    self = try bytes.withUnsafeBytes { bytes in
      var decoder = CBORDecoder(bytes)
      return try AppState(from: &decoder, seed: .unseeded)
    }
  }
}
