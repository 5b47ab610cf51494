import Access
public import ArgumentParser
import DaemonCore
import Documents
import EventLoop
import Glibc
import Journal
public import Lockstep
public import Logging
import SocketPaths
import Systemd
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

  /// The feature that the daemon hosts.
  var feature: Feature { get }

  /// The state with which a history begins. The default is made of the defaults of an
  /// `@ObservableState`, and of the initial states of the reactors in it.
  var initialState: Feature.State { get throws }

  /// The file that `initialState` reads, if any: for a message that it is not read because the
  /// state was restored.
  var initialStateFile: String? { get }

  /// The middleware that sees every action, in this order.
  var middleware: [any Middleware<Feature.State, Feature.Action>] { get }

  /// Change the feature's dependencies.
  func prepare(_ dependencies: inout DependencyValues)

  /// Serve until told to stop.
  ///
  /// There is one implementation, and no reason for another. It is a requirement so that every
  /// daemon has a copy that is specialised for its feature: one generic copy takes four times as
  /// long for an action.
  func serve(
    _ options: DaemonOptions, _ dependencies: DependencyValues, _ logger: Logger) throws

  /// Serve a state, with actions that do nothing, until told to stop (`--stub`).
  ///
  /// The default is for every daemon but the stock one, which need not have all of its code twice: the stub
  /// of its feature is of the same type.
  func serveStub(
    _ state: Feature.State, _ options: DaemonOptions, _ dependencies: DependencyValues,
    _ logger: Logger) throws

  /// The daemon's name, and its text for `--help`.
  static var configuration: DaemonConfiguration { get }
}

/// The name and the help text of a daemon.
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

/// The reason that a daemon cannot start.
public struct DaemonError: Error, CustomStringConvertible {
  public let description: String
  /// The exit status of the process.
  public let status: Int32

  public init(_ description: String, status: Int32 = 1) {
    self.description = description
    self.status = status
  }

  /// The status of a daemon that cannot read the state of another version of its feature: a restart
  /// ends the same way (`RestartPreventExitStatus=`).
  public static let otherVersion = ExitStatus.otherVersion.rawValue
}

extension LockstepDaemon {
  public var initialState: Feature.State {
    get throws {
      let defaults = (Feature.State.self as? any ObservableState.Type)?.initialValue
      guard let state = feature.composedLifecycle.initialState(defaults as? Feature.State) else {
        throw DaemonError(
          "\(Feature.State.self) has fields without a default: give the daemon an initialState.")
      }
      return state
    }
  }

  public var initialStateFile: String? { nil }

  public var middleware: [any Middleware<Feature.State, Feature.Action>] { [] }

  public func prepare(_ dependencies: inout DependencyValues) {}

  public static var configuration: DaemonConfiguration { DaemonConfiguration(name: "\(Self.self)") }

  /// Read the command line, serve until told to stop, and end the process.
  public static func main() {
    StandardStreams.openClosed()
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
    see lockstep(1). SIGTERM, SIGINT, SIGQUIT and SIGHUP say goodbye to every client and stop; but \
    with --policy, or under a service manager, SIGHUP reads the policy again. A second SIGINT or \
    SIGQUIT stops at once. SIGUSR1, SIGUSR2, SIGALRM and the like do nothing.

    ENVIRONMENT:
      LOCKSTEP_SOCKET  the socket
      XDG_RUNTIME_DIR  where the socket is, as lockstep.sock, if that names none

    \(StandardPlaces.help)

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
      if let file = options.checkPolicy {
        try check(file, logger)
      } else if options.reload {
        let request = try ReloadRequest(socket: options.socket ?? SocketPath.standard)
        for line in try request.perform() { print(line) }
      } else {
        try serve(logger)
      }
    } catch {
      logger.critical("\(error)")
      throw ExitCode((error as? DaemonError)?.status ?? ExitStatus.refused.rawValue)
    }
  }

  /// Check a policy file like a start, without serving.
  private func check(_ file: String, _ logger: Logger) throws {
    let loaded = try PolicyFile.load(file, for: D.Feature.self)
    for note in loaded.notes { logger.warning("\(note)") }
    let count = loaded.policy.rules.count
    print("\(file): a policy of \(count) \(count == 1 ? "rule" : "rules")")
  }

  /// End the process: it cannot serve, or the parser was asked for help or does not understand.
  static func end(by error: any Error) -> Never {
    if let code = error as? ExitCode { Glibc.exit(code.rawValue) }
    let text = fullMessage(for: error).withoutFarGuess
    let isHelp = exitCode(for: error) == .success
    let bytes = text.isEmpty ? [] : Array((text + "\n").utf8)
    let failure = StandardStreams.write(bytes, to: isHelp ? STDOUT_FILENO : STDERR_FILENO)
    let isWritten = failure == 0 || failure == EPIPE
    if isHelp, !isWritten {
      let reason = String(cString: strerror(failure))
      let line = "\(configuration.commandName ?? ""): cannot write to standard output: \(reason)\n"
      _ = StandardStreams.write(Array(line.utf8), to: STDERR_FILENO)
    }
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
        try daemon.serveStub(state, options, dependencies, logger)
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

  public func serveStub(
    _ state: Feature.State, _ options: DaemonOptions, _ dependencies: DependencyValues,
    _ logger: Logger
  ) throws {
    try serve(state, StubReducer<Feature>(), options, dependencies, logger)
  }

  package func serve<R: Reducer<Feature.State, Feature.Action>>(
    _ state: @autoclosure () throws -> R.State, _ reducer: R, _ options: DaemonOptions,
    _ dependencies: DependencyValues,
    _ logger: Logger
  ) throws {
    let path = options.socketPath
    let limits = options.limits
    Scheduling.wakePromptly()
    Descriptors.openEarly()
    let descriptors = Descriptors.raiseLimit()
    if descriptors - Descriptors.own < limits.connections {
      logger.warning(
        "fewer descriptors than connections: those beyond will wait (LimitNOFILE=, ulimit -n)",
        metadata: ["descriptors": .number(descriptors), "connections": .number(limits.connections)])
    }
    let service = try ServiceManager()
    if options.handOver, !service.isPresent {
      logger.notice("--hand-over has no effect: no service manager started this process")
    }
    let persistence = try options.persistence
    let directory = persistence?.directory ?? (service.isPresent ? StateDirectory.standard() : nil)
    let policy = try options.policy.map {
      try firstPolicy($0, for: R.self, keptIn: directory, service, logger)
    }
    let loop = try Loop()
    let signals = DaemonSignals(logger)
    // A process that took over clients must not be killed by the next restart before it can hand
    // them over.
    if service.hasStored { try signals.watch(on: loop) }
    let metrics = MetricsRegistry.shared
    let middleware = try standardMiddleware(options, logger, metrics) + middleware
    let about: [(String, Value)] = [
      ("version", .text(Self.configuration.version)), ("pid", .integer(Int64(getpid()))),
      ("socket", .text(path)),
    ]
    var shellMetrics: (@Sendable () -> String)?
    if options.metrics { shellMetrics = { metrics.openMetrics } }
    let recording = options.record.map { RecordingFile($0, logger) }
    // Checked before the journal begins a run: a failed start should leave no trace.
    if service.listeners.isEmpty { try Self.checkSocket(path) }
    let shell = try Daemon(
      initialState: try state(), middleware: middleware, dependencies: dependencies,
      limits: limits,
      about: about + (persistence.map { [("stateDirectory", .text($0.directory))] } ?? []),
      metrics: shellMetrics, policy: policy?.loaded.policy, persistence: persistence,
      service: service, recording: recording, progress: { service.extend(by: 30) },
      logger: logger, on: loop
    ) { reducer }
    if let file = initialStateFile, shell.isGoingOn || options.stub != nil {
      logger.notice(
        shell.isGoingOn
          ? "a file to begin with is not read: the state that was kept goes before it"
          : "a file to begin with is not read: --stub serves another one",
        metadata: ["file": "\(file)"])
    }
    if let file = options.policy {
      let reloader = reloader(file, shell, keptIn: directory, service, logger)
      reloader.trouble = policy?.trouble
      shell.policyReloader = reloader
    }
    if let directory {
      if let policy, policy.trouble == nil {
        Self.keep(policy.loaded, in: directory, logger)
      } else if options.policy == nil {
        KeptPolicy.forget(in: directory)
      }
    }
    // Set before the daemon is known to serve: from then on it may be told to stop.
    signals.onOrder = { [options] order in
      switch order {
      case .reload where options.policy != nil: shell.policyReloader?.reload()
      case .reload where service.isPresent:
        service.reloading()
        service.reloaded()
      case .reload, .terminate:
        // Some managers send SIGHUP with SIGTERM, or either of them twice: that is no second order.
        if shell.isStopping { return }
        if order == .terminate, options.handOver { shell.handOver() } else { shell.stop() }
      // A second Control-C ends the process at once.
      case .stop: shell.stop()
      }
    }
    try signals.watch(on: loop)
    if service.listeners.isEmpty {
      try shell.serve(at: path, mode: options.socketMode)
    } else {
      try shell.serve(on: service.listeners)
    }
    loop.run()
    withExtendedLifetime((shell, signals)) {}
  }

  /// Check that a path can be served on now. The directory of a standard place is created, the
  /// machine's as its units would do.
  private static func checkSocket(_ path: String) throws {
    try SocketPath.check(path)
    try StandardPlaces().makeDirectory(of: path)
    _ = try SocketClaim(path)
  }

  /// The policy at the start. If the file cannot be used, a process that follows another one takes
  /// the policy that was in force there: clients must not pay for a typing error.
  private func firstPolicy<R: Reducer>(
    _ file: String, for reducer: R.Type, keptIn directory: String?, _ service: ServiceManager,
    _ logger: Logger
  ) throws -> (loaded: LoadedPolicy, trouble: PolicyError?) {
    do throws(PolicyError) {
      let loaded = try PolicyFile.load(file, for: R.self)
      for note in loaded.notes { logger.warning("\(note)") }
      return (loaded, nil)
    } catch {
      guard service.hasStored, let directory,
        let kept = try? KeptPolicy.read(in: directory, for: R.self)
      else { throw error }
      logger.error("the policy that was in force before stays: \(error)")
      return (kept, error)
    }
  }

  /// The object that reloads the policy file and replaces the policy.
  private func reloader<R: Reducer>(
    _ file: String, _ shell: Daemon<R>, keptIn directory: String?, _ service: ServiceManager,
    _ logger: Logger
  ) -> PolicyReloader {
    PolicyReloader(
      on: shell.loop, service: service, logger: logger,
      read: {
        Result { () throws(PolicyError) in
          let loaded = try PolicyFile.load(file, for: R.self)
          if let directory { Self.keep(loaded, in: directory, logger) }
          return loaded
        }
      },
      take: { [unowned shell] in shell.rule(by: $0.policy) })
  }

  /// Store a policy for the next process.
  private static func keep(_ loaded: LoadedPolicy, in directory: String, _ logger: Logger) {
    do throws(JournalError) {
      try KeptPolicy.keep(loaded, in: directory)
    } catch {
      logger.warning("the policy is not kept for the next process: \(error)")
    }
  }

  /// The middleware of the options, in front of the daemon's own.
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
