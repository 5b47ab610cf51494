import ArgumentParser
import Documents
import EventLoop
import Glibc
import Lockstep
import LockstepServer
import Logging
import Sessions
import Values

@main
struct LockstepDaemon: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lockstepd",
    abstract: "Owns a document that every process on the machine can mirror.",
    discussion: """
      Clients connect to the socket, see the document or parts of it, live, and change it by \
      actions: see lockstep(1). SIGTERM and SIGINT say goodbye to every client and stop.

      ENVIRONMENT:
        LOCKSTEP_SOCKET  the socket
        XDG_RUNTIME_DIR  where the socket is, as lockstep.sock, if that names none

      EXIT STATUS:
        0   stopped as asked
        1   cannot serve; standard error says why
        64  the command line is wrong
      """,
    version: "0.1.0")

  @OptionGroup var options: DaemonOptions

  @Option(help: ArgumentHelp("Begin with the JSON document of this file.", valueName: "file"))
  var load: String?

  func run() throws {
    let logger = Logger(label: "lockstepd") { _ in
      LineLogHandler(form: options.logForm, level: options.logLevel)
    }
    do {
      try serve(logger)
    } catch {
      logger.critical("\(error)")
      throw ExitCode(1)
    }
  }

  private func serve(_ logger: Logger) throws {
    Signals.ignoreBrokenPipe()
    let path = options.socketPath
    let loop = try Loop()
    let daemon = Daemon(
      try initialDocument(), reducer: DocumentFeature(), limits: options.limits,
      about: [
        ("version", .text(Self.configuration.version)), ("pid", .integer(Int64(getpid()))),
        ("socket", .text(path)),
      ],
      logger: logger, on: loop)
    // Before anybody can know that we serve: who does may stop us.
    let signals = try SignalWatcher([SIGTERM, SIGINT], on: loop) { _ in daemon.stop() }
    try daemon.serve(at: path, mode: options.mode.bits)
    loop.run()
    withExtendedLifetime((daemon, signals)) {}
  }

  private func initialDocument() throws -> Document {
    guard let load else { return Document() }
    return Document(try DocumentFile.read(load))
  }
}
