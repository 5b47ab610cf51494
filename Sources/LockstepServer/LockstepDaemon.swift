public import ArgumentParser
import Documents
import EventLoop
import Glibc
public import Lockstep
public import Logging
import Sessions
import Values

/// A daemon for a feature, with every option of the stock daemon.
///
///     @main struct TodosDaemon: LockstepDaemon {
///       var feature: some Reducer { Todos() }
///     }
///
/// Options of its own are properties with `@Option` and `@Flag` (`import ArgumentParser`).
public protocol LockstepDaemon: ParsableArguments {
  associatedtype Feature: Reducer

  /// What the daemon does.
  var feature: Feature { get }

  /// The state of a daemon whose history begins. If it is not said, one made of the defaults of an
  /// `@ObservableState`, and of the initial states of reactors in the places where they are.
  var initialState: Feature.State { get throws }

  /// What looks at every action, in this order.
  var middleware: [any Middleware<Feature.State, Feature.Action>] { get }

  /// Change what the feature depends on.
  func prepare(_ dependencies: inout DependencyValues)

  /// Serve until told to stop.
  ///
  /// There is one implementation, and no reason for another. It is a requirement because every
  /// daemon then has a copy that is compiled for its feature: one for all features takes four times
  /// as long for an action.
  func serve(
    _ options: DaemonOptions, _ dependencies: DependencyValues, _ logger: Logger) throws

  /// What the daemon is called, and what it says of itself with `--help`.
  static var configuration: DaemonConfiguration { get }
}

/// What a daemon says of itself.
public struct DaemonConfiguration: Sendable {
  public var name: String
  public var abstract: String
  public var discussion: String
  public var version: String

  public init(
    name: String, abstract: String = "", discussion: String = "", version: String = ""
  ) {
    self.name = name
    self.abstract = abstract
    self.discussion = discussion
    self.version = version
  }
}

/// Why a daemon cannot begin.
public struct DaemonError: Error, CustomStringConvertible {
  public let description: String
  /// With which the process ends.
  public let status: Int32

  public init(_ description: String, status: Int32 = 1) {
    self.description = description
    self.status = status
  }

  /// The status of a daemon that cannot read what another version of its feature kept: started again
  /// as it is, it ends so again (`RestartPreventExitStatus=`).
  public static let otherVersion = ExitStatus.otherVersion.rawValue
}

extension LockstepDaemon {
  public var initialState: Feature.State {
    get throws {
      let defaults = (Feature.State.self as? any ObservableState.Type)?.initialValue
      guard let state = feature.lifecycle.initialState(defaults as? Feature.State) else {
        throw DaemonError(
          "\(Feature.State.self) has fields without a default: give the daemon an initialState.")
      }
      return state
    }
  }

  public var middleware: [any Middleware<Feature.State, Feature.Action>] { [] }

  public func prepare(_ dependencies: inout DependencyValues) {}

  public static var configuration: DaemonConfiguration { DaemonConfiguration(name: "\(Self.self)") }

  /// Read the command line, serve until told to stop, and end the process.
  public static func main() {
    do {
      var command = try DaemonCommand<Self>.parseAsRoot()
      try command.run()
      Glibc.exit(ExitStatus.done.rawValue)
    } catch {
      DaemonCommand<Self>.end(by: error)
    }
  }
}

/// The command line of a daemon.
struct DaemonCommand<D: LockstepDaemon>: ParsableCommand {
  static var configuration: CommandConfiguration {
    let own = D.configuration
    return CommandConfiguration(
      commandName: own.name, abstract: own.abstract,
      discussion: own.discussion + (own.discussion.isEmpty ? "" : "\n\n") + Self.standing,
      version: own.version)
  }

  private static var standing: String {
    """
    Clients connect to the socket, see the state or parts of it, live, and change it by actions: \
    see lockstep(1). SIGTERM, SIGINT and SIGHUP say goodbye to every client and stop; but with \
    --policy, or under a service manager, SIGHUP reads the policy again. A second \
    SIGINT stops at once.

    ENVIRONMENT:
      LOCKSTEP_SOCKET  the socket
      XDG_RUNTIME_DIR  where the socket is, as lockstep.sock, if that names none

    \(ExitStatus.help(of: .daemon))
    """
  }

  static var _errorPrefix: String { "\(D.configuration.name): " }

  @OptionGroup var daemon: D
  @OptionGroup(title: "Daemon Options") var options: DaemonOptions

  func run() throws {
    let logger = Logger(label: D.configuration.name) { [options] label in
      LineLogHandler(form: options.logForm, level: options.logLevel, identifier: label)
    }
    do {
      try serve(logger)
    } catch {
      logger.critical("\(error)")
      throw ExitCode((error as? DaemonError)?.status ?? ExitStatus.refused.rawValue)
    }
  }

  /// End the process: it cannot serve, or the parser was asked for help or does not understand.
  static func end(by error: any Error) -> Never {
    if let code = error as? ExitCode { Glibc.exit(code.rawValue) }
    let text = fullMessage(for: error).withoutFarGuess
    let isHelp = exitCode(for: error) == .success
    let bytes = text.isEmpty ? [] : Array((text + "\n").utf8)
    let failure = StandardStreams.write(bytes, to: isHelp ? STDOUT_FILENO : STDERR_FILENO)
    let isWritten = failure == 0 || failure == EPIPE
    let status: ExitStatus = !isHelp ? .usage : isWritten ? .done : .unwritten
    Glibc.exit(status.rawValue)
  }

  private func serve(_ logger: Logger) throws {
    Signals.ignoreBrokenPipe()
    var dependencies = DependencyValues.live
    daemon.prepare(&dependencies)
    try withDependencies({ $0 = dependencies }) {
      if let stub = options.stub {
        let state = try DocumentFile.read(stub, as: D.Feature.State.self)
        try daemon.serve(state, StubReducer<D.Feature>(), options, dependencies, logger)
      } else {
        try daemon.serve(options, dependencies, logger)
      }
    }
  }
}

// MARK: Serving

extension LockstepDaemon {
  public func serve(
    _ options: DaemonOptions, _ dependencies: DependencyValues, _ logger: Logger
  ) throws {
    try serve(try initialState, feature, options, dependencies, logger)
  }

  func serve<R: Reducer<Feature.State, Feature.Action>>(
    _ state: @autoclosure () throws -> R.State, _ reducer: R, _ options: DaemonOptions,
    _ dependencies: DependencyValues,
    _ logger: Logger
  ) throws {
    let path = options.socketPath
    Descriptors.openEarly()
    let descriptors = Descriptors.raiseLimit()
    if descriptors - Descriptors.own < options.limits.connections {
      logger.warning(
        "fewer descriptors than connections: those beyond will wait (LimitNOFILE=, ulimit -n)",
        metadata: ["descriptors": "\(descriptors)", "connections": "\(options.limits.connections)"])
    }
    let policy = try options.policy.map { try PolicyFile.read($0, for: R.self) }
    let service = try ServiceManager()
    let loop = try Loop()
    let metrics = MetricsRegistry.shared
    let middleware = try standardMiddleware(options, logger, metrics) + middleware
    let about: [(String, Value)] = [
      ("version", .text(Self.configuration.version)), ("pid", .integer(Int64(getpid()))),
      ("socket", .text(path)),
    ]
    let reports: [String: @Sendable () -> Value] =
      options.metrics ? ["metrics": { .text(metrics.openMetrics) }] : [:]
    let keeping = try options.keeping
    // Before the journal begins a run: of a start that comes to nothing there should be no trace.
    if service.listeners.isEmpty { try Self.checkSocket(path) }
    let shell = try Daemon(
      try state(), reducer: reducer, middleware: middleware, dependencies: dependencies,
      limits: options.limits,
      about: about + (keeping.map { [("stateDirectory", .text($0.directory))] } ?? []),
      reports: reports, policy: policy, keeping: keeping, service: service,
      progress: { service.extend(by: 30) }, logger: logger, on: loop)
    // Before anybody can know that we serve: who does may stop us.
    // One who was started to survive the end of its terminal (nohup) does.
    let hangUp = Signals.isIgnored(SIGHUP) ? [] : [SIGHUP]
    // Any number of them may come while it ends.
    try Signals.outlive([SIGTERM, SIGINT] + hangUp)
    let signals = try SignalWatcher([SIGTERM, SIGINT] + hangUp, on: loop) { [options] signal in
      switch signal {
      case SIGHUP where options.policy != nil: reload(options, shell, service, logger)
      case SIGHUP where service.isPresent:
        service.reloading()
        service.reloaded()
      // Who sends these again has no second wish: some send SIGHUP with SIGTERM. Who presses Control-C
      // again wants it to end at once.
      case SIGHUP where shell.isStopping, SIGTERM where shell.isStopping: break
      case SIGTERM where options.handOver: shell.handOver()
      default: shell.stop()
      }
    }
    if service.listeners.isEmpty {
      try shell.serve(at: path, mode: options.socketMode)
    } else {
      try shell.serve(on: service.listeners)
    }
    loop.run()
    withExtendedLifetime((shell, signals)) {}
  }

  /// Whether a path can be served on, at this moment. Of the machine's own daemon the directory is
  /// made, as its units would make it.
  private static func checkSocket(_ path: String) throws {
    try SocketPath.check(path)
    SocketPlace(path).makeDirectory()
    _ = try SocketClaim(path)
  }

  /// Read the policy again. All of it holds from here on, or, with a mistake in it, nothing.
  private func reload<R: Reducer>(
    _ options: DaemonOptions, _ shell: Daemon<R>, _ service: ServiceManager, _ logger: Logger
  ) {
    guard let file = options.policy else { return }
    service.reloading()
    do throws(PolicyError) {
      shell.rule(by: try PolicyFile.read(file, for: R.self))
      logger.notice("policy read again", metadata: ["file": "\(file)"])
    } catch {
      logger.error("the former policy stays: \(error)")
    }
    service.reloaded()
  }

  /// What the options ask for, in front of the daemon's own.
  private func standardMiddleware(
    _ options: DaemonOptions, _ logger: Logger, _ metrics: MetricsRegistry
  ) throws -> [any Middleware<Feature.State, Feature.Action>] {
    var middleware: [any Middleware<Feature.State, Feature.Action>] = []
    if let count = options.crashReport {
      middleware.append(CrashReportMiddleware(actions: count))
    }
    if options.logActions { middleware.append(LoggingMiddleware(logger: logger)) }
    if options.metrics { middleware.append(MetricsMiddleware(factory: metrics)) }
    let parts = try options.features.map { name throws(DaemonError) in
      do throws(UnknownAction) {
        return try ActionPattern(name, of: Feature.schema)
      } catch {
        throw DaemonError("--feature: \(error.message)")
      }
    }
    if !parts.isEmpty { middleware.append(FeatureFilter(parts: parts)) }
    if let rate = options.rateLimit { middleware.append(RateLimitMiddleware(perSecond: rate)) }
    return middleware
  }
}
