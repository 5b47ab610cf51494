import ArgumentParser
import Glibc
import Lockstep
import LockstepClient
import PrimeTimeFeature

/// Shows the number and the favorites of `primetimed`, and changes them.
@main struct PrimeTimeClient: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "primetime", abstract: "Count, and keep the favorite primes of primetimed.",
    subcommands: [
      Increment.self, Decrement.self, Save.self, Remove.self, Delete.self, Login.self, Logout.self,
      Watch.self, ScopeToCounter.self,
    ])
}

/// The daemon to talk to.
struct DaemonAddress: ParsableArguments {
  @Option(help: ArgumentHelp("The daemon's socket.", valueName: "path"))
  var socket: String?

  /// Connect, do something, and say goodbye.
  func with(_ body: (MirrorStore<PrimeTime>) async throws -> Void) async throws {
    let app = try await MirrorStore<PrimeTime>.connect(.init(socket: socket, label: "primetime"))
    do { try await body(app) } catch {
      await app.connection.finish()
      throw error
    }
    await app.connection.finish()
  }

  func send(_ action: AppAction) async throws {
    try await with { app in
      try await app.send(action)
      print(app.state.line)
    }
  }
}

struct Increment: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "+", abstract: "Add one.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.counter(.incrTapped)) }
}

struct Decrement: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "-", abstract: "Take one away.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.counter(.decrTapped)) }
}

struct Save: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Add the number to the favorites.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.primeModal(.saveFavoritePrimeTapped)) }
}

struct Remove: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Remove the number from the favorites.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.primeModal(.removeFavoritePrimeTapped)) }
}

struct Delete: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Delete favorites by their places.")

  @Argument(help: "Places in the list, from 0.")
  var indices: [Int]

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.send(.favoritePrimes(.deleteFavoritePrime(Set(indices))))
  }
}

struct Login: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Log in.")

  @Argument(help: "What to be called.")
  var name: String

  @Option(help: "What there is to say of oneself.")
  var bio = ""

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.send(.account(.login(User(id: Int(getuid()), name: name, bio: bio))))
  }
}

struct Logout: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Log out.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws { try await daemon.send(.account(.logout)) }
}

struct Watch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the state, and each change of it, until interrupted.")

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { app in
      for await state in app.changes { show(state.line) }
    }
  }
}

struct ScopeToCounter: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "scope", abstract: "See the counter alone, and change it.",
    discussion: """
      Shows each count until interrupted. A line + or - of standard input changes it. Of the rest \
      of the state nothing comes to this process.
      """)

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    let counter = try await connect()
    Task.detached { await sendKeys(to: counter) }
    for await count in counter.changes { show("count \(count)") }
  }

  /// The counter's store. The store of the whole app, and its subscription, end with this function.
  private func connect() async throws -> MirrorStore<Part<Int, CounterAction>> {
    try await MirrorStore<PrimeTime>.connect(.init(socket: daemon.socket, label: "primetime scope"))
      .scope(state: \.count, action: \.counter)
  }
}

private func sendKeys(to counter: MirrorStore<Part<Int, CounterAction>>) async {
  while let key = readLine() {
    switch key {
    case "+": counter.post(.incrTapped)
    case "-": counter.post(.decrTapped)
    default: continue
    }
  }
}

/// Writes a line at once, also to a pipe. Flushing would wait for the reader of standard input.
private func show(_ line: String) {
  let bytes = Array("\(line)\n".utf8)
  _ = write(STDOUT_FILENO, bytes, bytes.count)
}

extension AppState {
  fileprivate var line: String {
    let user = loggedInUser?.name ?? "nobody"
    return "count \(count), favorites \(favoritePrimes), \(user), \(activityFeed.count) activities"
  }
}
