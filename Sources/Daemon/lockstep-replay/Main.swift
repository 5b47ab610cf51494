import ArgumentParser
import DaemonCore
import Documents
import EventLoop
import Files
import Glibc
import Lockstep
import SystemPackage
import Values

/// Replays a stock daemon's recording, and compares the commands.
@main
struct ReplayTool: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lockstep-replay",
    abstract: "Replay recordings of 'lockstepd --record', and compare the results.",
    discussion: """
      Every event is handled again, in this process and at once; nothing is sent, and no effect is \
      run. Every command that it leads to must be the recorded one. The first difference is reported \
      with its event. Exits with 0 if there is none, 10 if there is one, 11 if a file cannot be read \
      as a recording.
      """)

  @Argument(help: "Recordings of daemons of documents.", completion: .file())
  var files: [String]

  @Option(help: ArgumentHelp("Stop at this revision, and print the state.", valueName: "revision"))
  var until: UInt64?

  @Flag(
    help: ArgumentHelp(
      "Also handle an event during which the process ended.",
      discussion: "If that event ended the daemon, it ends this process, too."))
  var withLast = false

  func run() throws {
    for file in files { try run(file) }
  }

  private func run(_ file: String) throws {
    let bytes: [UInt8]
    do throws(Errno) { bytes = try FileDescriptor.contents(of: file) ?? [] } catch {
      throw Self.failure("cannot read \(file): \(error)", .usage)
    }
    var replay: Replay<DocumentFeature>
    let report: Replay<DocumentFeature>.Report
    do {
      replay = try Replay(bytes, reducer: DocumentFeature())
      report = try replay.run(until: until)
    } catch {
      throw Self.failure("\(file): \(error).", .damaged)
    }
    if let difference = report.difference {
      throw Self.failure("\(file): \(difference)", .differs)
    }
    if until != nil { print(JSON.text(replay.server.state.root)) }
    print(
      "\(file): \(report.events) events, \(report.commands) commands: equal, to revision "
        + "\(report.revision), digest \(report.digest)\(end(of: report))")
    if withLast { replay.handleLastEvent() }
  }

  private func end(of report: Replay<DocumentFeature>.Report) -> String {
    if report.isWhole || until != nil { return "" }
    guard let event = report.lastEvent else { return ", where the recording breaks off" }
    return ", where the process ended in the middle of event \(report.events + 1), "
      + "\(event.prefix(400)) (--with-last handles it)"
  }

  private static func failure(_ text: String, _ status: EventLoop.ExitStatus) -> ExitCode {
    _ = StandardStreams.write(Array("lockstep-replay: \(text)\n".utf8), to: STDERR_FILENO)
    return ExitCode(status.rawValue)
  }
}
