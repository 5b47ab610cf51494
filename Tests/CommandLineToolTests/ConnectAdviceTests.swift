import EventLoop
import Foundation
import SocketPaths
import Testing

@testable import CommandLineTool

/// The advice that a user gets when no daemon serves.
struct ConnectAdviceTests {
  private static let missing = LoopError(code: -ENOENT, operation: "connect to x")

  /// A root directory with these units, and with systemd running or not.
  private func withRoot<R>(
    _ units: [String], isRunning: Bool = true, _ body: (String) throws -> R
  ) throws -> R {
    let root = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: root) }
    var files = units.map { "usr/lib/systemd/system/\($0)" }
    if isRunning { files.append("run/systemd/system/x") }
    for file in files {
      let url = root.appending(path: file)
      try FileManager.default.createDirectory(
        at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data().write(to: url)
    }
    return try body(root.path)
  }

  private func start(_ path: String, under root: String) -> String {
    var advice = ConnectAdvice(path: path)
    advice.root = root
    return advice.start
  }

  @Test func `an installed unit is to be started where systemd runs`() throws {
    let units = ["lockstepd.socket", "lockstep@.socket"]
    try withRoot(units) { root in
      #expect(start(SocketPath.system, under: root).contains("'systemctl start lockstepd.socket'"))
      #expect(
        start("/run/lockstep/todos.sock", under: root)
          .contains("'systemctl start lockstep@todos.socket'"))
      #expect(!start("/tmp/lockstep.sock", under: root).contains("systemctl"))
    }
    try withRoot(units, isRunning: false) { root in
      #expect(!start(SocketPath.system, under: root).contains("systemctl"))
    }
    try withRoot(["lockstepd.socket"]) { root in
      #expect(!start("/run/lockstep/todos.sock", under: root).contains("systemctl"))
    }
  }

  @Test func `a missing directory is to be made first`() throws {
    try withRoot([]) { root in
      var advice = ConnectAdvice(path: root + "/a b/s")
      advice.daemon = "lockstepd"
      let directory = root + "/a\\ b"
      #expect(
        advice.sentence(about: Self.missing)
          == "no daemon serves at \(root)/a b/s: there is no such socket. Start one with "
          + "'mkdir --parents \(directory) && lockstepd --socket \(directory)/s', or name another "
          + "socket with --socket.")
      advice = ConnectAdvice(path: root + "/s")
      advice.daemon = "lockstepd"
      #expect(advice.start.hasPrefix("Start one with 'lockstepd --socket \(root)/s'"))
    }
  }

  @Test func `the advice repeats nothing, and every error ends in a sentence`() {
    for code in [EPROTOTYPE, ENOTDIR, EMFILE, ECONNREFUSED, EACCES, ENOENT] {
      let error = LoopError(code: -code, operation: "connect to /tmp/x.sock")
      let sentence = ConnectAdvice(path: "/tmp/x.sock").sentence(about: error)
      #expect(!sentence.contains("connect to /tmp/x.sock: connect to"), "\(sentence)")
      #expect(sentence.hasSuffix(".") && !sentence.hasSuffix(".."), "\(sentence)")
    }
    #expect(LoopError(code: -EPROTOTYPE, operation: "x").reason.hasSuffix("(EPROTOTYPE)"))
  }
}
