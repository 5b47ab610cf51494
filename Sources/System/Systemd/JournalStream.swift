// The native protocol of systemd-journald (systemd.io/JOURNAL_NATIVE_PROTOCOL): one datagram per
// entry, one line KEY=value per field. A value that contains a newline is written as the key on a
// line, its length in 8 bytes, little-endian, the value, and a newline. An entry that is too large
// for a datagram is written to sealed memory, whose descriptor an empty datagram carries.

internal import Glibc

/// The priority of a journal entry: the levels of syslog(3).
public enum JournalPriority: Int, Sendable {
  case emergency = 0
  case alert, critical, error, warning, notice, information, debug
}

/// A writer to systemd's journal, with fields instead of text.
///
/// Any thread may use it. An entry is written whole or not at all.
public final class JournalStream: Sendable {
  /// A field of an entry: a name, made valid by `fieldName`, and any value.
  public typealias Field = (name: String, value: String)

  /// The longest wait for a busy journal: a log line must not hold up its writer.
  public static let patience: Duration = .milliseconds(20)

  private let socket: DatagramSocket
  private let identifier: String?

  /// A writer to the journal, if this process's standard error goes there: if `$JOURNAL_STREAM`
  /// names its device and inode. Otherwise nil, as when standard error is redirected.
  ///
  /// `identifier` becomes the field SYSLOG_IDENTIFIER, which the journal shows before each message;
  /// without one it shows the process's name. Nil also when no socket can be made.
  public convenience init?(identifier: String? = nil, environment: Environment = .process) {
    self.init(
      identifier: identifier, environment: environment, standardError: STDERR_FILENO,
      path: "/run/systemd/journal/socket")
  }

  init?(identifier: String?, environment: Environment, standardError: Int32, path: String) {
    guard Self.names(environment["JOURNAL_STREAM"], standardError),
      let address = DatagramAddress(path), let socket = try? DatagramSocket(to: address)
    else { return nil }
    self.socket = socket
    self.identifier = identifier
  }

  private static func names(_ stream: String?, _ descriptor: Int32) -> Bool {
    guard let parts = stream?.split(separator: ":", omittingEmptySubsequences: false),
      parts.count == 2, let device = dev_t(digits: parts[0]), let inode = ino_t(digits: parts[1])
    else { return false }
    var file = stat()
    return fstat(descriptor, &file) == 0 && file.st_dev == device && file.st_ino == inode
  }

  /// Add an entry to the journal, with its fields in this order.
  ///
  /// Waits for a busy journal for `patience` at most. Throws the system's error: `EAGAIN` when the
  /// journal did not read in time, `ENOENT` or `ECONNREFUSED` when there is none. The entry is then
  /// lost; it can still be written to standard error.
  public func send(
    priority: JournalPriority, message: String, fields: [Field] = []
  ) throws(SystemError) {
    var entry: [UInt8] = []
    Self.append("PRIORITY", "\(priority.rawValue)", to: &entry)
    if let identifier { Self.append("SYSLOG_IDENTIFIER", identifier, to: &entry) }
    Self.append("MESSAGE", message, to: &entry)
    for field in fields { Self.append(Self.fieldName(field.name), field.value, to: &entry) }
    do throws(SystemError) {
      try socket.send(entry, patience: Self.patience)
    } catch  where error.code == EMSGSIZE || error.code == ENOBUFS {
      let memory = try SealedMemory.make("journal-entry", CollectionOfOne(entry))
      defer { close(memory) }
      try socket.send([], descriptors: [memory], patience: Self.patience)
    }
  }

  private static func append(_ name: String, _ value: String, to entry: inout [UInt8]) {
    entry += name.utf8
    let bytes = value.utf8
    if bytes.contains(UInt8(ascii: "\n")) {
      entry.append(UInt8(ascii: "\n"))
      withUnsafeBytes(of: UInt64(bytes.count).littleEndian) { entry += $0 }
    } else {
      entry.append(UInt8(ascii: "="))
    }
    entry += bytes
    entry.append(UInt8(ascii: "\n"))
  }

  /// The name in the form that the journal accepts: A to Z, digits and underscores, beginning with
  /// a letter, at most 64 bytes.
  ///
  /// Lower-case letters become capitals, and every invalid byte an underscore. `FIELD_` is prefixed
  /// to a name that does not begin with a letter, because names with a leading underscore are the
  /// journal's own, and to a name that every entry has.
  public static func fieldName(_ name: String) -> String {
    let bytes = name.utf8.map { byte -> UInt8 in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - 0x20
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): byte
      default: UInt8(ascii: "_")
      }
    }
    let text = String(decoding: bytes, as: UTF8.self)
    let beginsWell = bytes.first.map { $0 >= UInt8(ascii: "A") && $0 != UInt8(ascii: "_") }
    let isFree = !["MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER"].contains(text)
    return String((beginsWell == true && isFree ? text : "FIELD_" + text).prefix(64))
  }
}
