import Glibc
public import Lockstep
public import Values

// Theory of operation
//
// A handler of a fatal signal may do next to nothing: no allocation, no lock, no Swift container.
// So every action is written, as a line of text, into a ring of fixed slots before it is reduced;
// the handler writes the slots as they are, oldest first, and raises the signal again.

/// Records the last actions for a crash report: on a fatal signal (a trap in a reducer, for
/// example) they are written to standard error; the last one was being reduced.
public struct CrashReportMiddleware<State: Synchronizable, Action: SynchronizableAction>:
  Middleware
{
  /// Begin to record the last `count` actions. A process has only one report.
  public init(actions count: Int) { CrashReport.begin(slots: count) }

  public var name: String { "crash report" }

  public func before(
    _ action: inout Action, state: State, context: inout MiddlewareContext<Action>
  ) throws(Rejection) -> MiddlewareVerdict {
    CrashReport.note("\(context.sequence) \(action.name) from \(context.cause.origin)\n")
    return .proceed
  }
}

/// The ring of lines. Written on the loop's thread only, and read by the handler of a signal that
/// stops that thread, or the process.
enum CrashReport {
  private static let slotBytes = 128

  /// Unsafe: written once, before the handler is in place, and the memory lives for ever.
  nonisolated(unsafe) private static var memory: UnsafeMutablePointer<UInt8>?
  /// Unsafe: as `memory`.
  nonisolated(unsafe) private static var slots = 0
  /// Unsafe: written by the loop's thread alone; the handler reads its current value.
  nonisolated(unsafe) private static var written = 0

  private static let signals = [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE]

  static func begin(slots count: Int) {
    guard memory == nil else { return }
    let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: count * slotBytes)
    bytes.initialize(repeating: 0, count: count * slotBytes)
    (memory, slots) = (bytes, count)
    for signal in signals {
      var action = sigaction()
      action.__sigaction_handler.sa_handler = { CrashReport.write($0) }
      // When it is raised again, the signal has its default effect.
      action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND))
      sigaction(signal, &action, nil)
    }
  }

  static func note(_ line: String) {
    guard let memory else { return }
    let slot = memory + written % slots * slotBytes
    var line = line
    line.withUTF8 { text in
      let count = min(text.count, slotBytes - 1)
      if let base = text.baseAddress { slot.update(from: base, count: count) }
      // A truncated line still ends with a newline.
      if count < text.count { slot[count - 1] = UInt8(ascii: "\n") }
      slot[count] = 0
    }
    written += 1
  }

  /// Async-signal-safe: writes memory that exists already, and raises the signal again.
  private static func write(_ signal: Int32) {
    put("fatal signal; the last actions, oldest first:\n")
    let count = min(written, slots)
    for index in written - count..<written {
      guard let slot = memory.map({ $0 + index % slots * slotBytes }) else { break }
      _ = Glibc.write(STDERR_FILENO, slot, strnlen(slot, slotBytes))
    }
    raise(signal)
  }

  private static func put(_ text: StaticString) {
    _ = Glibc.write(STDERR_FILENO, text.utf8Start, text.utf8CodeUnitCount)
  }
}
