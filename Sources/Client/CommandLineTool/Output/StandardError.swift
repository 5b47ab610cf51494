import Documents
import EventLoop
import Glibc
import Synchronization
import Values

enum StandardError {
  private static let json = Atomic(false)

  /// Whether every line is a JSON object. Set it before anything is written.
  static var isJSON: Bool {
    get { json.load(ordering: .relaxed) }
    set { json.store(newValue, ordering: .relaxed) }
  }

  /// Report why the command ends, in one line.
  static func say(_ failure: Failure) { say(failure.value, failure.message) }

  /// Report an event while the command goes on, in one line.
  static func note(_ message: String) { say(["notice": ["message": .text(message)]], message) }

  private static func say(_ value: Value, _ message: String) {
    guard isJSON else { return write("lockstep: \(message.escapingControls)\n") }
    write(JSON.text(value, sortedKeys: true).escapingControls + "\n")
  }

  static func write(_ text: String) {
    _ = StandardStreams.write(Array(text.utf8), to: STDERR_FILENO)
  }
}
