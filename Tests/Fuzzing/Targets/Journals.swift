import CBOR
import DaemonCore
import Documents
import Lockstep
import Records
import Values
import Wire

/// The rows of a journal are refused, or restore the state that their patches make; a server
/// continues from it, and a replay of that server's own journal gives its state.
/// Input: four bytes for the snapshot's numbers and one for its digest; its state; rows, each a
/// byte that selects its parts, a byte for the step of each number, and a chunk: the patch.
func fuzzJournal(_ given: Input) {
  var input = given
  let head = (0..<4).map { _ in number(input.byte()) }
  let trust = input.byte()
  guard let value = input.value() else { return }
  let snapshot = JournalSnapshot(
    revision: head[0], base: head[1], sequence: head[2], time: Timestamp(nanoseconds: 0),
    digest: trust & 1 == 0 ? value.digest(testSeed) : Digest(0), sessions: [session],
    sessionCount: head[3])
  let bytes = encoded {
    $0.array(2)
    DocumentFeature.schema.encode(into: &$0)
    value.encode(into: &$0)
  }
  guard
    var recovery = try? JournalReplay<Document>(
      from: snapshot, bytes, schema: DocumentFeature.schema, seed: testSeed)
  else { return }
  var expected: Value? = value
  var row = JournalRow(
    sequence: snapshot.sequence, time: Timestamp(nanoseconds: 0), cause: .owner,
    name: "", action: nil, revision: snapshot.revision, change: nil, answer: nil)
  var base = snapshot.base
  while !input.isEmpty {
    let choice = input.byte()
    row.sequence &+= step(input.byte())
    row.revision &+= step(input.byte())
    row.change = nil
    row.answer = nil
    let patch = input.chunk()
    if choice & 1 == 0 { row.change = .init(base: base, patch: patch.indices) }
    if choice & 2 == 0 {
      row.answer = .init(session: session.token, number: number(choice >> 4), outcome: .reduced)
    }
    do {
      try patch.withUnsafeBytes { patch in
        try recovery.apply(row, patch: row.change == nil ? nil : patch)
      }
      if choice & 4 == 0 {
        try recovery.check(recovery.state.root.digest(testSeed), at: row.revision)
      }
    } catch {
      return
    }
    guard row.change != nil else { continue }
    base = row.revision
    require(apply(patch, to: &expected) == nil, "a patch that a state takes, a value takes")
    require(expected.isSame(as: recovery.state.root), "the patch makes the same of both")
  }
  goOn(from: recovery)
}

/// The session that sent the actions in the rows.
private let session = JournalSession(
  token: SessionToken(high: 1, low: 2), uid: 3, number: 4,
  outcomes: [Acknowledgement(first: 1, last: 2, revision: 0, mark: .durable, .reduced)])

/// Small for most choices, and near the limits of 64 bits for the others.
private func number(_ choice: UInt8) -> UInt64 {
  choice < 0xf0 ? UInt64(choice) : UInt64.max >> (UInt64(choice & 15) / 4) &- UInt64(choice & 3)
}

/// 1 for most choices.
private func step(_ choice: UInt8) -> UInt64 {
  choice < 0xe0 ? 1 : number(choice) &- 0xe0
}

private func goOn(from recovery: JournalReplay<Document>) {
  let now = Instant(nanoseconds: 1)
  let kept = recovery.restoredState(epoch: 1, runs: [JournalRun(run: 1, base: 0)], revision: nil)
  var server = Server(
    restoring: kept, reducer: DocumentFeature(), durability: .sync, at: now)
  var commands: [Command] = []
  server.handle(.started(.crashed), at: now, into: &commands)
  server.handle(.turnEnded, at: now, into: &commands)
  let (head, bytes) = server.pendingSnapshot.encode()
  do throws(JournalReplayError) {
    let again = try JournalReplay<Document>(
      from: head, bytes, schema: DocumentFeature.schema, seed: testSeed)
    require(again.state.isSame(as: recovery.state), "what is kept makes the state again")
    require(again.revision == server.revision, "what is kept has the revision")
  } catch {
    fatalError("Broken: what a server keeps can be recovered: \(error)")
  }
}
