import DaemonCore
import Glibc
import Lockstep
public import Logging
import Values
import Wire

/// Records all events of a daemon, for `lockstep-replay`. Belongs to the loop's thread.
///
/// Each event is in the file before it is handled: an event that ends the process is the last in
/// it. If the file cannot be written, or an action cannot be encoded, the recording ends, and not
/// the daemon.
public final class RecordingFile {
  private let path: String
  private let logger: Logger
  private var descriptor: Int32
  private var buffer: [UInt8] = []

  /// Create a file that only its owner may read, because it has all that the state has. An existing
  /// file, of a process before, is renamed with the suffix ".old".
  public init(_ path: String, _ logger: Logger) throws {
    self.path = path
    self.logger = logger
    var status = stat()
    if lstat(path, &status) == 0 {
      guard status.st_mode & S_IFMT == S_IFREG else {
        throw DaemonError("cannot record in \(path): it is there, and no regular file")
      }
      // The former recording may be the one that is needed.
      rename(path, path + ".old")
    }
    descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else {
      throw DaemonError("cannot record in \(path): \(String(cString: strerror(errno)))")
    }
  }

  deinit { close(descriptor) }

  var isOpen: Bool { descriptor >= 0 }

  func begin<State>(_ setup: ServerSetup<State>, schema: Schema) {
    buffer += Recording.head(setup, schema: schema)
  }

  /// Write an event that is about to be handled, and the commands before it.
  func note<Action: SynchronizableAction>(_ event: Event<Action>, at now: Instant) {
    guard isOpen else { return }
    guard let bytes = Recording.event(event, at: now) else {
      return end("an action that never travels cannot be written down")
    }
    buffer += bytes
    write()
  }

  /// Note the commands; they are written with the next event.
  func note(_ commands: ArraySlice<Command>, revision: UInt64) {
    guard isOpen else { return }
    buffer += Recording.commands(commands, revision: revision)
  }

  /// Write the end. Nothing is written afterwards.
  func end(revision: UInt64, digest: Digest) {
    guard isOpen else { return }
    buffer += Recording.end(revision: revision, digest: digest)
    write()
    close(descriptor)
    descriptor = -1
  }

  private func end(_ reason: String) {
    logger.error("the recording ends", metadata: ["file": "\(path)", "reason": "\(reason)"])
    close(descriptor)
    descriptor = -1
    buffer = []
  }

  private func write() {
    var start = 0
    while start < buffer.count {
      let count = buffer.withUnsafeBytes { bytes in
        Glibc.write(descriptor, bytes.baseAddress.map { $0 + start }, bytes.count - start)
      }
      if count < 0 {
        if errno == EINTR { continue }
        return end(String(cString: strerror(errno)))
      }
      start += count
    }
    buffer.removeAll(keepingCapacity: buffer.count < 1 << 20)
  }
}
