import ArgumentParser
import CounterFeature
import Glibc
import LockstepClient

/// Shows the counter of `counterd`, and changes it.
@main struct CounterClient: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "counter", abstract: "See and change the counter of counterd.",
    subcommands: [Increment.self, Decrement.self, Fact.self, Cancel.self, Watch.self])
}

/// The daemon to talk to.
struct DaemonAddress: ParsableArguments {
  @Option(help: ArgumentHelp("The daemon's socket.", valueName: "path"))
  var socket: String?

  /// Connect, do something, and say goodbye.
  func with(_ body: (MirrorStore<Counter>) async throws -> Void) async throws {
    let counter = try await MirrorStore<Counter>.connect(.init(socket: socket, label: "counter"))
    do { try await body(counter) } catch {
      await counter.connection.finish()
      throw error
    }
    await counter.connection.finish()
  }
}

struct Increment: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Add one.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { counter in
      try await counter.send(.increment)
      print(counter.count)
    }
  }
}

struct Decrement: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Take one away.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { counter in
      try await counter.send(.decrement)
      print(counter.count)
    }
  }
}

struct Fact: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Ask for a fact about the number, and wait for it.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { counter in
      guard !counter.isLoading else { throw Disabled() }
      try await counter.send(.numberFactButtonTapped)
      for await isLoading in counter.observe(\.isLoading) where !isLoading {
        print(counter.numberFact ?? "cancelled")
        return
      }
    }
  }
}

/// The button is disabled.
struct Disabled: Error, CustomStringConvertible {
  let description = "a fact is loading already"
}

struct Cancel: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Stop waiting for a fact.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { try await $0.send(.cancelFact) }
  }
}

struct Watch: AsyncParsableCommand {
  enum Part: String, CaseIterable, ExpressibleByArgument { case all, count, fact }

  static let configuration = CommandConfiguration(
    abstract: "Show the counter, and each change of it, until interrupted.")

  @Argument(help: "What to show; changes of anything else are not even looked at.")
  var part = Part.all

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { counter in
      switch part {
      case .all: for await state in counter.changes { show(state.line) }
      case .count: for await count in counter.observe(\.count) { show("\(count)") }
      case .fact: for await fact in counter.observe(\.numberFact) { show(fact ?? "no fact") }
      }
    }
  }

  private func show(_ line: String) {
    print(line)
    // Also when standard output is a pipe.
    fflush(nil)
  }
}

extension Counter.State {
  fileprivate var line: String {
    if isLoading { return "\(count), a fact is loading" }
    return numberFact.map { "\(count), \($0)" } ?? "\(count)"
  }
}
