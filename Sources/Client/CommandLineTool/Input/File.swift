import CBOR
import Documents
import EventLoop
import Glibc
import Values

/// A file that the command line names; `-` is standard input or output.
struct File: Equatable {
  let path: String

  init(_ path: String) { self.path = path }

  static let standardInput = File("-")

  var isStandard: Bool { path == "-" }
  var name: String { isStandard ? "standard input" : path }

  // MARK: Reading

  func read() throws(Failure) -> [UInt8] {
    let descriptor = isStandard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(.read) }
    defer { if !isStandard { close(descriptor) } }
    var bytes: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 1 << 18)
    while true {
      let count = Glibc.read(descriptor, &part, part.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw failure(.read) }
      if count == 0 { return bytes }
      bytes.append(contentsOf: part[..<count])
    }
  }

  func parsingJSON(_ bytes: [UInt8], tagged: Bool = false) throws(Failure) -> Value {
    do {
      return try JSON.parse(bytes, tagged: tagged)
    } catch {
      throw Failure(.usage, "\(name) is not JSON: \(error).")
    }
  }

  func parsingCBOR(_ bytes: [UInt8]) throws(Failure) -> Value {
    let result = Result { () throws(CBORError) in
      try CBORDecoder.read(bytes) { (decoder) throws(CBORError) in
        try Value(from: &decoder, seed: .unseeded)
      }
    }
    switch result {
    case .success(let value): return value
    case .failure(let error):
      throw Failure(.usage, "\(name) is not a CBOR value that a document can hold: \(error).")
    }
  }

  // MARK: Writing

  /// Replace the file's contents, or keep the old ones if that fails.
  func write(_ bytes: [UInt8]) throws(Failure) {
    if isStandard { return try StandardOutput.write(bytes) }
    // `stat` follows a link to its target; a device or a pipe is written to directly.
    var status = stat()
    if stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG {
      return try write(bytes, to: path, flags: 0)
    }
    // A link stays one: its target is replaced.
    let target = realpath(path, nil).map { resolved in
      defer { free(resolved) }
      return String(cString: resolved)
    }
    let temporary = "\(target ?? path).\(getpid()).new"
    do throws(Failure) {
      try write(bytes, to: temporary, flags: O_CREAT | O_EXCL)
    } catch {
      unlink(temporary)
      throw error
    }
    guard rename(temporary, target ?? path) == 0 else {
      let failure = failure(.write)
      unlink(temporary)
      throw failure
    }
  }

  private func write(_ bytes: [UInt8], to path: String, flags: Int32) throws(Failure) {
    let descriptor = open(path, O_WRONLY | O_CLOEXEC | flags, 0o666)
    guard descriptor >= 0 else { throw failure(.write) }
    defer { close(descriptor) }
    guard StandardStreams.write(bytes, to: descriptor) == 0 else { throw failure(.write) }
    // A pipe or device cannot be synchronised, and need not be.
    if fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS { throw failure(.write) }
  }

  private func failure(_ access: Access) -> Failure {
    Failure(
      access == .read ? .usage : .unwritten,
      "cannot \(access) \(name): \(String(cString: strerror(errno))).")
  }

  private enum Access { case read, write }
}
