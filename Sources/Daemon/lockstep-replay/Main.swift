import Access
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

      With --export a recording for others is written, without the values at the paths of the \
      policy's 'deny-read', and at those that --leave-out names.
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

  @Option(
    help: ArgumentHelp(
      "Write a recording for others there, without the values at the policy's 'deny-read'.",
      valueName: "file"))
  var export: String?

  @Option(
    help: ArgumentHelp(
      "With --export: leave out these values, too; * is any key.", valueName: "pointer"),
    transform: Self.pattern)
  var leaveOut: [PathPattern] = []

  private static func pattern(_ text: String) throws -> PathPattern {
    guard let pattern = PathPattern(argument: text) else {
      throw ValidationError(
        "'\(text)' is no path: a path begins with '/', and in a key '/' is written ~1, '~' ~0.")
    }
    return pattern
  }

  func validate() throws {
    if export == nil, !leaveOut.isEmpty {
      throw ValidationError("--leave-out is for --export: name the file to write.")
    }
    guard export != nil else { return }
    if files.count != 1 { throw ValidationError("--export writes one recording: name one.") }
    if until != nil || withLast {
      throw ValidationError(
        "--export writes a whole recording: leave --until and --with-last away.")
    }
  }

  func run() throws {
    if let export { return try write(export) }
    for file in files { try run(file) }
  }

  private func write(_ target: String) throws {
    let (file, bytes) = (files[0], try Self.contents(of: files[0]))
    let export: Export
    let (report, replaced): (RecordingExport<DocumentFeature>.Report, Int)
    do {
      export = try Export(of: bytes, without: leaveOut)
      if export.isEmpty {
        throw Self.failure(
          "\(file): nothing would be left out, for no rule of its policy has 'deny-read'. "
            + "Name it with --leave-out.", .usage)
      }
      (report, replaced) = try export.run(bytes)
    } catch let error as RecordingError {
      throw Self.failure("\(file): \(error).", .damaged)
    }
    do throws(Errno) {
      let descriptor = try FileDescriptor.opening(
        target, .writeOnly, [.create, .exclusiveCreate], permissions: .ownerReadWrite)
      defer { descriptor.closeQuietly() }
      try descriptor.write(report.bytes)
    } catch {
      throw Self.failure("cannot write \(target): \(error)", .usage)
    }
    print(
      "\(target): \(report.events) events, to revision \(report.revision), without \(export.leftOut): "
        + "\(replaced) values replaced")
    if let event = report.firstOther {
      print(
        "\(target): from event \(event) on its revisions are others than those of \(file), for an action "
          + "with other values had another outcome")
    }
  }

  private func run(_ file: String) throws {
    let bytes = try Self.contents(of: file)
    let replay = try begin(bytes, file)
    let report: Replay<DocumentFeature>.Report
    do {
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

  private func begin(_ bytes: [UInt8], _ file: String) throws -> Replay<DocumentFeature> {
    do {
      return try Replay(bytes, reducer: DocumentFeature())
    } catch {
      throw Self.failure("\(file): \(error).", .damaged)
    }
  }

  private static func contents(of file: String) throws -> [UInt8] {
    do throws(Errno) {
      return try FileDescriptor.contents(of: file) ?? []
    } catch {
      throw failure("cannot read \(file): \(error)", .usage)
    }
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
