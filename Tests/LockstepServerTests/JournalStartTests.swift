import CBOR
import Documents
import Foundation
import Journal
import Lockstep
import Logging
import Records
import Testing
import Values
import Wire

@testable import DaemonCore
@testable import LockstepServer

/// The state that a daemon continues from when it has both a hand-over and a journal.
@Suite(.timeLimit(.minutes(1))) struct JournalStartTests {
  private let folder: String

  init() throws {
    var template = Array("/tmp/lockstep-start-XXXXXX".utf8CString)
    folder = try #require(mkdtemp(&template).map { String(cString: $0) })
  }

  private func removeFolder() { try? FileManager.default.removeItem(atPath: folder) }

  private func open(
    _ image: HandOver<Document>?, in directory: String? = nil
  ) throws -> JournalStart<Document> {
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    return try JournalStart.open(
      .init(
        persistence: PersistenceOptions(directory: directory ?? folder), image: image,
        schema: DocumentFeature.schema, limits: Limits(), logger: logger, progress: {}))
  }

  /// The state of a run at a revision, with `n` equal to the revision.
  private func restoredState(runs: [UInt64], revision: UInt64) -> RestoredState<Document> {
    RestoredState(
      state: Document(["n": .integer(Int64(revision))]), epoch: 9, seed: HashSeed(7),
      run: runs.last ?? 1, runs: runs.map { JournalRun(run: $0, base: 0) }, revision: revision,
      base: revision, sequence: revision)
  }

  private func image(runs: [UInt64], revision: UInt64) -> HandOver<Document> {
    HandOver(
      kept: restoredState(runs: runs, revision: revision), connections: [], connectionCount: 0)
  }

  /// Makes a journal that has reached a revision in a run.
  private func makeJournal(run: UInt64, revision: UInt64, ended: UInt64?) throws {
    let file = try JournalFile(directory: folder, mode: .sync, create: true)
    defer { file.close() }
    let kept = restoredState(runs: [run], revision: revision)
    try file.create(epoch: kept.epoch, seed: kept.seed)
    try file.begin(
      run: JournalRun(run: run, base: 0),
      schema: JournalStart<Document>.encoded(DocumentFeature.schema), revision: 0, time: .now)
    let snapshot = PendingSnapshot(handing: kept, schema: DocumentFeature.schema, time: .now)
    try JournalStart.keepSnapshot(snapshot, file)
    if let ended { try file.endRun(revision: ended) }
  }

  /// Checks that a start continues from an image, and that the journal then has all of it.
  private func checkThatItGoesOn(
    with image: HandOver<Document>, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let start = try open(image)
    start.file?.close()
    #expect(start.isHandedOver, sourceLocation: sourceLocation)
    #expect(start.kept?.state == image.kept.state, sourceLocation: sourceLocation)
    let run = try #require(start.kept?.run)
    #expect(run > image.kept.run, sourceLocation: sourceLocation)
    let next = try open(nil)
    next.file?.close()
    #expect(next.kept?.state == image.kept.state, sourceLocation: sourceLocation)
    #expect(next.kept?.revision == image.kept.revision, sourceLocation: sourceLocation)
    #expect(next.kept?.epoch == image.kept.epoch, sourceLocation: sourceLocation)
    #expect(next.kept?.run == run + 1, sourceLocation: sourceLocation)
  }

  // MARK: The log

  /// A journal with two actions of each of two runs before its snapshot, and one behind it.
  @Test(arguments: [false, true])
  func `the log begins before the snapshot, with the values that this schema has written`(
    isOther: Bool
  ) throws {
    defer { removeFolder() }
    let schema = JournalStart<Document>.encoded(DocumentFeature.schema)
    let file = try JournalFile(directory: folder, mode: .sync, create: true)
    try file.create(epoch: 9, seed: HashSeed(7))
    let session = JournalSession(token: SessionToken(high: 1, low: 2), uid: 0, number: 1)
    var encoder = CBOREncoder()
    DocumentAction.increment(["n"], by: 1).encode(into: &encoder)
    func append(_ revision: UInt64) throws {
      var batch = JournalBatch(number: revision, revision: revision)
      batch.bytes = encoder.bytes
      batch.rows = [
        JournalRow(
          sequence: revision, time: .now, cause: .owner, name: "increment",
          action: 0..<batch.bytes.count, revision: revision, change: nil,
          answer: JournalRow.Answer(
            session: session.token, number: revision, outcome: .unchanged))
      ]
      if revision == 1 { batch.sessions = [session] }
      try file.append([batch])
    }
    try file.begin(
      run: JournalRun(run: 1, base: 0), schema: isOther ? [0xa0] : schema, revision: 0, time: .now)
    try append(1)
    try append(2)
    try file.begin(run: JournalRun(run: 2, base: 2), schema: schema, revision: 2, time: .now)
    try append(3)
    try append(4)
    var state = restoredState(runs: [1, 2], revision: 4)
    state.sessions = [session]
    let (head, bytes) =
      PendingSnapshot(handing: state, schema: DocumentFeature.schema, time: .now).encode()
    let id = try file.beginSnapshot(head)
    try file.addPart(id, bytes[...])
    try file.finishSnapshot(id)
    while try file.cut(limit: 100, keeping: 3) {}
    try append(5)
    file.close()
    let start = try open(nil)
    start.file?.close()
    let log = start.kept?.log ?? []
    #expect(log.map(\.sequence) == [2, 3, 4, 5])
    #expect(log.map { $0.action == nil } == [isOther, false, false, false])
    #expect(log.allSatisfy { $0.name == "increment" && $0.outcome == .unchanged })
  }

  // MARK: Suspects

  @Test func `an action during which the process ended is a suspect, and then poison`() throws {
    defer { removeFolder() }
    try makeJournal(run: 1, revision: 2, ended: nil)
    let done = SessionAction(session: SessionToken(high: 1, low: 2), number: 3)
    let foreseen = SessionAction(session: SessionToken(high: 1, low: 3), number: 4)
    for kills in [[1, 1], [2, 1]] {
      let marker = try MarkerFile(directory: folder)
      marker.noteInFlight(done)
      if kills == [1, 1] { marker.inFlight.noteForeseen(foreseen) }
      let start = try open(nil)
      start.file?.close()
      let kept = try #require(start.kept)
      #expect(kept.poisoned == (kills[0] == 2 ? [done] : []))
      #expect(kept.suspects == (kills[0] == 2 ? [foreseen] : [done, foreseen]))
      #expect(marker.actionInFlight == nil && marker.actionForeseen == nil)
    }
  }

  // MARK: A process that could not open its journal

  @Test(arguments: [nil, 2] as [UInt64?])
  func `the hand-over of a process that never opened its journal is used`(ended: UInt64?) throws {
    defer { removeFolder() }
    try makeJournal(run: 1, revision: 2, ended: ended)
    try checkThatItGoesOn(with: image(runs: [1, 1000], revision: 5))
  }

  @Test func `the hand-over is used too if nothing has changed since`() throws {
    defer { removeFolder() }
    try makeJournal(run: 1, revision: 2, ended: 2)
    try checkThatItGoesOn(with: image(runs: [1, 1000], revision: 2))
  }

  @Test(arguments: [false, true])
  func `an unused journal gets the handed-over state`(hasEpoch: Bool) throws {
    defer { removeFolder() }
    let file = try JournalFile(directory: folder, mode: .sync, create: true)
    if hasEpoch { try file.create(epoch: 9, seed: HashSeed(7)) }
    file.close()
    try checkThatItGoesOn(with: image(runs: [1], revision: 5))
  }

  // MARK: A journal that is another's, or has more

  @Test func `a journal with a later revision is used`() throws {
    defer { removeFolder() }
    try makeJournal(run: 1, revision: 7, ended: nil)
    let start = try open(image(runs: [1, 1000], revision: 5))
    start.file?.close()
    #expect(!start.isHandedOver)
    #expect(start.kept?.revision == 7)
  }

  @Test func `a journal whose last run ended after the image is used`() throws {
    defer { removeFolder() }
    try makeJournal(run: 1, revision: 5, ended: 6)
    let start = try open(image(runs: [1, 1000], revision: 5))
    start.file?.close()
    #expect(!start.isHandedOver)
    #expect(start.kept?.revision == 6)
  }

  @Test func `a journal of a run that the former process did not know is used`() throws {
    defer { removeFolder() }
    try makeJournal(run: 2, revision: 2, ended: nil)
    let start = try open(image(runs: [1, 1000], revision: 5))
    start.file?.close()
    #expect(!start.isHandedOver)
    #expect(start.kept?.revision == 2)
  }

  // MARK: Without a journal

  @Test func `without a journal no handed-over state is durable`() throws {
    defer { removeFolder() }
    let start = try open(image(runs: [1], revision: 5), in: folder + "/missing/state")
    #expect(start.file == nil && start.isHandedOver)
    #expect(start.kept?.revision == 5)
    #expect(start.kept?.durable == 0)
  }
}
