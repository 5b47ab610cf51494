import DaemonCore
import Documents
import Glibc
public import Logging
import Systemd
import Values

/// How log lines are written to standard error.
public enum LogForm: String, CaseIterable, Sendable {
  /// `2026-11-21T10:00:00Z info client connected pid=12 uid=0`
  case text
  /// One JSON object a line.
  case json
  /// Entries of systemd's journal, with their fields. If standard error does not go there: text
  /// after a prefix such as `<6>`, which the journal reads as the priority.
  case journal
}

/// A log handler that writes whole lines to standard error, one system call each.
public struct LineLogHandler: LogHandler {
  public var metadata: Logger.Metadata = [:]
  public var logLevel: Logger.Level
  public let form: LogForm
  private let journal: JournalStream?

  /// A handler of a form; if none is named, journal entries if standard error goes to the journal,
  /// else text. Journal entries have this identifier.
  public init(form: LogForm?, level: Logger.Level, identifier: String? = nil) {
    journal =
      form == nil || form == .journal ? JournalStream(identifier: identifier) : nil
    self.form = form ?? (journal == nil ? .text : .journal)
    logLevel = level
  }

  public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  public func log(event: LogEvent) {
    var fields = metadata.map(Field.init)
    if let more = event.metadata { fields += more.map(Field.init) }
    fields.sort { $0.name < $1.name }
    if let journal, send("\(event.message)", event.level, fields, to: journal) { return }
    write(line(event.level, "\(event.message)", fields) + "\n")
  }

  /// Returns whether the journal accepted the entry. Values are fields, and also follow the
  /// message, for people.
  private func send(
    _ message: String, _ level: Logger.Level, _ fields: [Field], to journal: JournalStream
  ) -> Bool {
    let text = ([message] + fields.map(\.text)).joined(separator: " ")
    let priority = JournalPriority(rawValue: Self.priority(level)) ?? .information
    do throws(SystemError) {
      try journal.send(
        priority: priority, message: text,
        fields: fields.map { (name: "lockstep_" + $0.name, value: $0.value) })
      return true
    } catch {
      return false
    }
  }

  private func line(_ level: Logger.Level, _ message: String, _ fields: [Field]) -> String {
    switch form {
    case .text:
      return ([Self.timestamp(), "\(level)", message] + fields.map(\.text)).joined(separator: " ")
    case .journal:
      return (["<\(Self.priority(level))>\(message)"] + fields.map(\.text)).joined(separator: " ")
    case .json:
      let own = [("time", Self.timestamp()), ("level", "\(level)"), ("message", message)].map(
        Field.init(name:text:))
      return "{" + (own + fields).map(\.json).joined(separator: ",") + "}"
    }
  }

  private func write(_ line: String) {
    var line = line
    line.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }

  /// The levels of syslog(3).
  private static func priority(_ level: Logger.Level) -> Int {
    switch level {
    case .trace, .debug: 7
    case .info: 6
    case .notice: 5
    case .warning: 4
    case .error: 3
    case .critical: 2
    }
  }

  private static func timestamp() -> String {
    var seconds = time(nil)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    var buffer = [CChar](repeating: 0, count: 32)
    let count = strftime(&buffer, buffer.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// A name and a value that follow a message.
private struct Field {
  let name: String
  let value: String
  private let isNumber: Bool

  init(name: String, text: String) {
    self.name = name
    value = text
    isNumber = false
  }

  init(_ key: String, _ metadata: Logger.Metadata.Value) {
    name = key
    value = "\(metadata)"
    if case .stringConvertible(let value) = metadata {
      isNumber = value is any FixedWidthInteger
    } else {
      isNumber = false
    }
  }

  /// `name=value`, with the value in quotes if it is not plain.
  var text: String {
    let isPlain = !value.isEmpty && value.unicodeScalars.allSatisfy { $0.value > 32 && $0 != "\"" }
    return "\(name)=\(isPlain ? value : Self.json(value))"
  }

  var json: String { "\(Self.json(name)):\(isNumber ? value : Self.json(value))" }

  private static func json(_ text: String) -> String { JSON.text(.text(text)) }
}

extension Logger {
  /// Log a line that the server has for the administrator.
  func log(_ line: LogLine) {
    let level: Logger.Level =
      switch line.level {
      case .debug: .debug
      case .info: .info
      case .notice: .notice
      case .warning: .warning
      case .error: .error
      }
    guard level >= logLevel else { return }
    var metadata: Logger.Metadata = [:]
    for field in line.fields {
      let number = field.isNumber ? Int64(field.value) : nil
      metadata[field.name] = number.map { .number($0) } ?? .string(field.value)
    }
    log(level: level, "\(line.message)", metadata: metadata)
  }
}

extension Logger.MetadataValue {
  /// A number, which is also logged as one.
  static func number(_ value: some FixedWidthInteger & Sendable) -> Self {
    .stringConvertible(value)
  }
}
