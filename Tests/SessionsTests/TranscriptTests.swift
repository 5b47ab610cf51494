import ClientCore
import Documents
import Lockstep
import Testing
import Values
import Wire

/// `Protocols/vectors/sessions.json`: whole conversations. With `LOCKSTEP_WRITE_VECTORS` in the
/// environment the real server and the real client write the file.
@Suite struct TranscriptTests {
  @Test func `server and client send what the transcripts say, byte for byte`() throws {
    let transcripts = try TranscriptScenario.all.map { scenario in
      TranscriptText.object(scenario, try scenario.steps())
    }
    try VectorText.compare(TranscriptText.file(transcripts), with: "sessions.json")
  }

  @Test(arguments: TranscriptScenario.all.map(\.name))
  func `a client that receives the daemon's bytes shows what the transcript says`(
    name: String
  ) throws {
    var player = TranscriptPlayer()
    for (index, step) in try TranscriptText.steps(of: name).enumerated() {
      try player.play(step, "step \(index) of \(name)")
    }
    #expect(player.outbox.isEmpty, "\(name): the client says more than the transcript")
  }

  @Test
  func `a transcript has every message of the daemon but schemas, bookmarks and decisions`() throws
  {
    let said = try TranscriptScenario.all.flatMap { try $0.steps() }.compactMap { step -> UInt64? in
      guard case .daemon(let item, _) = step else { return nil }
      return TranscriptPair.type(of: item)?.rawValue
    }
    #expect(Set(said) == Set(11...23).subtracting([17, 19]))
  }
}

/// A client without a server, which receives the daemon's side of a transcript.
private struct TranscriptPlayer {
  private var session = TranscriptPair.client()
  /// The client's messages that the transcript has not yet confirmed.
  private(set) var outbox: [[UInt8]] = []
  private let now = Instant(nanoseconds: 1_000_000_000)

  init() { update { $0.start(at: $1, into: &$2) } }

  mutating func play(_ step: TranscriptStep, _ place: String) throws {
    switch step {
    case .happens: break
    case .client(let item):
      if outbox.isEmpty { provoke(item) }
      let said = outbox.isEmpty ? nil : outbox.removeFirst()
      #expect(said == item, "\(place): \(clientMessages(TranscriptPair.framed(item)))")
    case .daemon(let item, let mirrors):
      let bytes = TranscriptPair.framed(item)
      update { session, now, commands in
        bytes.withUnsafeBytes { session.received($0, at: now, into: &commands) }
      }
      let shown = session.hasEnded ? [] : ShownMirror.all(of: session)
      #expect(shown == mirrors, "\(place): \(serverMessages(bytes))")
    case .closed:
      outbox.removeAll()
      update { $0.disconnected(at: $1, into: &$2) }
    }
  }

  /// Calls what the client's user must have called for this message.
  private mutating func provoke(_ item: [UInt8]) {
    guard let message = clientMessages(TranscriptPair.framed(item)).first else { return }
    update { session, _, commands in
      switch message {
      case .subscribe(_, let path, _):
        _ = session.subscribe(to: path, as: Value.self, into: &commands)
      case .unsubscribe(let number): session.unsubscribe(number, into: &commands)
      case .action(_, let mark, let payload): _ = session.send(payload, mark, into: &commands)
      case .ping(let value): session.ping(value, into: &commands)
      case .digestRequest(let number): session.requestDigest(of: number, into: &commands)
      case .query(let number, let name, let arguments):
        session.query(number, name, arguments: arguments, into: &commands)
      case .goodbye: session.close(into: &commands)
      case .hello: break
      }
    }
  }

  private mutating func update(
    _ body: (inout ClientSession, Instant, inout [ClientSession.Command]) -> Void
  ) {
    var commands: [ClientSession.Command] = []
    body(&session, now, &commands)
    for command in commands {
      switch command {
      case .connect: update { $0.connected(at: $1, into: &$2) }
      case .send(let bytes): outbox += TranscriptPair.items(bytes)
      case .disconnect, .notify: break
      }
    }
  }
}
