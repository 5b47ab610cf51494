import ArgumentParser
import FeedFeature
import Glibc
import LockstepClient

/// Shows the messages of `feedd`, and tells it when to connect.
@main struct FeedClient: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "feed", abstract: "See the messages of feedd, and tell it when to listen.",
    subcommands: [
      Active.self, Background.self, Connect.self, Disconnect.self, Watch.self,
      WatchWhileConnected.self, ServeRemote.self,
    ])
}

/// The daemon to talk to.
struct DaemonAddress: ParsableArguments {
  @Option(help: ArgumentHelp("The daemon's socket.", valueName: "path"))
  var socket: String?

  /// Connect, do something, and say goodbye.
  func with(_ body: (MirrorStore<Feed>) async throws -> Void) async throws {
    let feed = try await MirrorStore<Feed>.connect(.init(socket: socket, label: "feed"))
    do { try await body(feed) } catch {
      await feed.connection.finish()
      throw error
    }
    await feed.connection.finish()
  }

  func send(_ action: Feed.Action) async throws {
    try await with { feed in
      try await feed.send(action)
      say(feed.state.line)
    }
  }
}

struct Active: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "The app comes to the foreground.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.scenePhaseEvent(.active)) }
}

struct Background: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "The app goes to the background.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.scenePhaseEvent(.background)) }
}

struct Connect: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Connect to the remote.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.connectWebSocket) }
}

struct Disconnect: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Disconnect from the remote.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.disconnectWebSocket) }
}

struct Watch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the feed, and each change of it, until interrupted.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { feed in
      for await state in feed.changes { say(state.line) }
    }
  }
}

struct WatchWhileConnected: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Have the daemon listen until this process ends, and show the feed.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { feed in
      try await feed.send(.watchWhileConnected)
      for await state in feed.changes { say(state.line) }
    }
  }
}

/// Prints a line, also when standard output is a pipe.
func say(_ line: String) {
  print(line)
  fflush(nil)
}

extension Feed.State {
  /// The state on one line: `connected, 2 messages, the last: hello`.
  fileprivate var line: String {
    let last = messages.last.map { ", the last: \($0)" } ?? ""
    return "\(connection.description), \(messages.count) messages\(last)"
  }
}

extension Feed.Connection {
  fileprivate var description: String {
    switch self {
    case .disconnected: "disconnected"
    case .connecting: "connecting"
    case .connected: "connected"
    case .waiting(let reason): "waiting, for \(reason)"
    }
  }
}
