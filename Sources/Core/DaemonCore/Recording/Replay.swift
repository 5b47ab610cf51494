import CBOR
public import Lockstep
import Values
import Wire

/// Replays a recording, and compares the results.
///
///     let replay = try Replay(bytes, reducer: Todos())
///     let report = replay.run()
///
/// The reducer, its middleware and its dependencies must be those of the recorded server: they are
/// code, and no part of a recording. Effects are not run: the actions that they sent are in the
/// recording.
///
/// A class, as the code that would copy and move it, and the server in it, would be 30 KB.
public final class Replay<R: Reducer> {
  /// The server after the events that have been replayed.
  public private(set) var server: Server<R>
  private var reader: RecordingReader<R>
  /// An event that was read and is not handled yet.
  private var waiting: (time: Instant, event: Event<R.Action>)?
  /// The large actions that are to be decoded.
  private var jobs: [ConnectionID: ActionJob<R>] = [:]

  /// The result of a replay.
  public struct Report: Equatable, Sendable {
    /// The number of events that were handled.
    public var events = 0
    /// The number of commands that were compared.
    public var commands = 0
    public var revision: UInt64 = 0
    public var digest = Digest(0)
    /// Whether the recording has an end; if not, its process ended abruptly.
    public var isWhole = false
    /// The event during which the process ended, if the recording breaks off in the middle of one. It
    /// is not handled: it may be the one that ended it.
    public var lastEvent: String?
    /// The first difference.
    public var difference: Difference?
  }

  /// The first difference between the replayed server and the recorded one.
  public struct Difference: Equatable, Sendable, CustomStringConvertible {
    /// The number of the event, from 1; nil at the end.
    public var event: Int?
    public var description: String
  }

  /// Begin the replay of a recording. Throws if its head cannot be read.
  public convenience init(
    _ bytes: [UInt8], reducer: R, middleware: [any Middleware<R.State, R.Action>] = [],
    dependencies: DependencyValues = DependencyValues()
  ) throws(RecordingError) {
    let reader = try RecordingReader<R>(bytes)
    self.init(
      reader,
      Server(reader.setup, reducer: reducer, middleware: middleware, dependencies: dependencies))
  }

  /// Designated, so it does nothing else: a class refers to such initialisers even if nothing calls them, and
  /// so does every program to all that they call, in the generic form that no program needs.
  private init(_ reader: RecordingReader<R>, _ server: Server<R>) {
    (self.reader, self.server) = (reader, server)
  }

  /// Replay the events, up to a revision if one is named, or to the first difference.
  public func run(until last: UInt64? = nil) throws(RecordingError) -> Report {
    var report = Report()
    while report.difference == nil, last.map({ server.revision < $0 }) ?? true {
      guard let piece = try reader.next() else { break }
      switch piece {
      case .event(let time, let event): waiting = (time, event)
      case .commands(let hash, let count, let revision):
        guard let (time, event) = waiting else { continue }
        waiting = nil
        handle(event, at: time, (hash, count, revision), &report)
      case .end(let revision, let digest):
        report.isWhole = true
        compare((revision, digest), &report)
      }
    }
    report.revision = server.revision
    report.digest = server.digest()
    report.lastEvent = waiting.map { "\($0.event)" }
    return report
  }

  /// Handle the event during which the recorded process ended (`Report.lastEvent`). If it was the
  /// event that ended it, this process ends as well.
  public func handleLastEvent() {
    guard let (time, event) = waiting else { return }
    waiting = nil
    var commands: [Command] = []
    server.handle(decoding(event), at: time, into: &commands)
  }

  /// An event with what the bytes that were received before are decoded to.
  private func decoding(_ event: Event<R.Action>) -> Event<R.Action> {
    guard case .actionDecoded(let id, let action) = event else { return event }
    let job = jobs.removeValue(forKey: id)
    return .actionDecoded(id, action == nil ? nil : job?.decoded())
  }

  private func handle(
    _ event: Event<R.Action>, at time: Instant,
    _ recorded: (hash: UInt64, count: Int, revision: UInt64), _ report: inout Report
  ) {
    var event = decoding(event)
    if case .effectCancelled(let name) = event, let running = server.runningName(of: name.texts) {
      event = .effectCancelled(running)
    }
    report.events += 1
    if case .snapshotEncoded(let job, let frames, _) = event,
      let (made, _) = server.snapshot(for: job)?.measured(), made != frames
    {
      report.difference = Difference(
        event: report.events,
        description:
          "event \(report.events), snapshotEncoded: recorded were \(frames.joined().count) bytes; "
          + "the state gives other \(made.joined().count)")
      return
    }
    var commands: [Command] = []
    server.handle(event, at: time, into: &commands)
    for case .decodeAction(let id) in commands { jobs[id] = server.action(for: id) }
    report.commands += commands.count
    let isEqual =
      Recording.hash(of: commands) == recorded.hash && server.revision == recorded.revision
    guard !isEqual else { return }
    report.difference = Difference(
      event: report.events,
      description:
        "event \(report.events), \("\(event)".prefix(400)): recorded were \(recorded.count) "
        + "commands and revision \(recorded.revision); now there are \(commands.count) and "
        + "revision \(server.revision): \("\(commands)".prefix(2000))")
  }

  private func compare(_ recorded: (revision: UInt64, digest: Digest), _ report: inout Report) {
    let digest = server.digest()
    guard recorded != (server.revision, digest) else { return }
    report.difference = Difference(
      event: nil,
      description:
        "the end: recorded were revision \(recorded.revision) and digest \(recorded.digest), now "
        + "there are \(server.revision) and \(digest)")
  }
}
