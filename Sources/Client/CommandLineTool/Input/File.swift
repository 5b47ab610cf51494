import CBOR
import Documents
import EventLoop
import Files
import Glibc
import SystemPackage
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
    do throws(Errno) {
      let file = isStandard ? .standardInput : try FileDescriptor.opening(path, .readOnly)
      defer { if !isStandard { file.closeQuietly() } }
      return try file.readToEnd() ?? []
    } catch {
      throw failure(.read, error)
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
      return try write(bytes, to: path, [])
    }
    // A link stays one: its target is replaced.
    let target = realpath(path, nil).map { resolved in
      defer { free(resolved) }
      return String(cString: resolved)
    }
    let temporary = "\(target ?? path).\(getpid()).new"
    do throws(Failure) {
      try write(bytes, to: temporary, [.create, .exclusiveCreate])
    } catch {
      unlink(temporary)
      throw error
    }
    guard rename(temporary, target ?? path) == 0 else {
      let failure = failure(.write, Errno(rawValue: errno))
      unlink(temporary)
      throw failure
    }
  }

  private func write(
    _ bytes: [UInt8], to path: String, _ options: FileDescriptor.OpenOptions
  ) throws(Failure) {
    do throws(Errno) {
      let file = try FileDescriptor.opening(
        path, .writeOnly, options,
        permissions: [.ownerReadWrite, .groupReadWrite, .otherReadWrite])
      defer { file.closeQuietly() }
      try file.write(bytes)
      // A pipe or device cannot be synchronised, and need not be.
      if fsync(file.rawValue) != 0 && errno != EINVAL && errno != EROFS {
        throw Errno(rawValue: errno)
      }
    } catch {
      throw failure(.write, error)
    }
  }

  private func failure(_ access: Access, _ error: Errno) -> Failure {
    // Longer ones are no names, but what the command line had in place of one.
    let name = name.prefix(bytes: Int(PATH_MAX))
    if access == .read, error == .noSuchFileOrDirectory || error == .fileNameTooLong,
      let first = path.first(where: { !$0.isWhitespace }), first == "{" || first == "["
    {
      return Failure(
        .usage,
        "there is no file '\(name.prefix(scalars: 200, ifOverBytes: 250))'. JSON itself is read from "
          + "standard input: name '-', as in: echo '\(first == "{" ? "{}" : "[]")' | lockstep … -")
    }
    return Failure(access == .read ? .usage : .unwritten, "cannot \(access) \(name): \(error).")
  }

  private enum Access { case read, write }
}
