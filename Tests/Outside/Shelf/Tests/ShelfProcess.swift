import Foundation
import LockstepClient
import ShelfFeature
import Testing

/// A daemon of the shelf: a process with a socket and a state directory of its own.
final class ShelfProcess {
  private let folder: String
  private let program: String
  private var process = Process()

  init() throws {
    program = try #require(
      ProcessInfo.processInfo.environment["SHELFD"], "the path of shelfd is in no SHELFD")
    var template = Array("/tmp/shelf-XXXXXX".utf8CString)
    folder = try #require(mkdtemp(&template).map { String(cString: $0) })
    try start()
  }

  var options: Connection.Options {
    var options = Connection.Options(socket: folder + "/socket", label: "shelf test")
    options.waitsForDaemon = true
    return options
  }

  private func start() throws {
    process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = [
      "--socket", folder + "/socket", "--state-dir", folder + "/state", "--log-level", "warning",
    ]
    try process.run()
  }

  /// Another process goes on.
  func restart() throws {
    end()
    try start()
  }

  private func end() {
    guard process.isRunning else { return }
    process.terminate()
    process.waitUntilExit()
  }

  deinit {
    end()
    try? FileManager.default.removeItem(atPath: folder)
  }
}

/// Waits until an observed value fulfils a condition.
func wait<Values: AsyncSequence>(
  for values: Values, _ condition: (Values.Element) -> Bool
) async throws {
  for try await value in values where condition(value) { return }
  Issue.record("the values ended without the one that was waited for")
}

extension Screen.State {
  /// What is being written on the sleeve that is open.
  var note: Note.State? {
    if case .sleeve(let note) = self { note } else { nil }
  }
}
