public import SystemPackage

// Whole files, over swift-system: its calls are retried when a signal interrupts them (EINTR). They
// throw nothing but `Errno`; here the signature says so.
extension FileDescriptor {
  /// Open a file that a child process does not inherit.
  public static func opening(
    _ path: String, _ mode: AccessMode, _ options: OpenOptions = [],
    permissions: FilePermissions? = nil
  ) throws(Errno) -> FileDescriptor {
    do {
      return try FileDescriptor.open(
        FilePath(path), mode, options: options.union(.closeOnExec), permissions: permissions)
    } catch {
      throw Errno(thrown: error)
    }
  }

  /// The bytes of a file or a pipe. Returns nil when there are more than `limit`.
  public static func contents(of path: String, limit: Int = .max) throws(Errno) -> [UInt8]? {
    let file = try opening(path, .readOnly)
    defer { file.closeQuietly() }
    return try file.readToEnd(limit: limit)
  }

  /// Read the next bytes into a buffer. Returns them, as a slice of it; empty at the end.
  public func readPart(into buffer: inout [UInt8]) throws(Errno) -> ArraySlice<UInt8> {
    do {
      let count = try buffer.withUnsafeMutableBytes { try read(into: $0) }
      return buffer[..<count]
    } catch {
      throw Errno(thrown: error)
    }
  }

  /// Read to the end. Returns nil when there are more than `limit` bytes.
  public func readToEnd(limit: Int = .max) throws(Errno) -> [UInt8]? {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: min(max(limit, 1), 1 << 18))
    while true {
      let part = try readPart(into: &buffer)
      if part.isEmpty { return bytes }
      bytes += part
      if bytes.count > limit { return nil }
    }
  }

  /// Read this many bytes. Returns nil when the end comes before.
  public func read(exactly count: Int) throws(Errno) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count < count {
      var rest = [UInt8](repeating: 0, count: count - bytes.count)
      let part = try readPart(into: &rest)
      if part.isEmpty { return nil }
      bytes += part
    }
    return bytes
  }

  /// Go to the beginning.
  public func rewind() throws(Errno) {
    do { _ = try seek(offset: 0, from: .start) } catch { throw Errno(thrown: error) }
  }

  /// Write all bytes.
  public func write(_ bytes: some Collection<UInt8>) throws(Errno) {
    do { _ = try writeAll(bytes) } catch { throw Errno(thrown: error) }
  }

  /// Close, whatever comes of it: no caller can do anything about an error.
  public func closeQuietly() { try? close() }
}

extension Errno {
  /// The error that a call of swift-system has thrown.
  fileprivate init(thrown error: any Error) { self = error as? Errno ?? .ioError }
}
