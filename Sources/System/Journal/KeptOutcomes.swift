import CBOR
public import Records
import Values
public import Wire

/// The outcomes of the sessions' latest actions: those of a snapshot, then those of the rows after
/// it.
public struct KeptOutcomes: Sendable {
  private var sessions: [JournalSession]
  private var places: [SessionToken: Int] = [:]
  private let window: UInt64
  private let mark: Mark

  /// Begin with the sessions of a snapshot. At most `window` actions of each are remembered; those
  /// of the rows are as durable as `mark` says.
  public init(_ sessions: [JournalSession], window: Int, mark: Mark) {
    self.sessions = sessions
    self.window = UInt64(max(window, 1))
    self.mark = mark
    for (place, session) in sessions.enumerated() { places[session.token] = place }
  }

  /// Add a session that the snapshot does not have.
  public mutating func add(_ session: JournalSession) {
    guard places[session.token] == nil else { return }
    places[session.token] = sessions.count
    sessions.append(session)
  }

  /// Note the outcome in a row, in the rows' order. Answers to unknown sessions are ignored.
  public mutating func note(_ row: JournalRow) {
    guard let answer = row.answer, let place = places[answer.session] else { return }
    let end = sessions[place].outcomes.count - 1
    let last = end < 0 ? 0 : sessions[place].outcomes[end].last
    guard answer.number > last else { return }
    // Outcomes before a gap are of no use, and are forgotten.
    if answer.number - last > 1 { sessions[place].outcomes = [] }
    let next = Acknowledgement(
      first: answer.number, last: answer.number, revision: row.revision, mark: mark,
      answer.outcome)
    if let end = sessions[place].outcomes.indices.last,
      Self.merges(sessions[place].outcomes[end], next)
    {
      sessions[place].outcomes[end].last = next.last
      sessions[place].outcomes[end].revision = next.revision
    } else {
      sessions[place].outcomes.append(next)
    }
  }

  /// Whether two runs differ only in the actions that they cover, and can be merged.
  private static func merges(_ first: Acknowledgement, _ second: Acknowledgement) -> Bool {
    var moved = first
    (moved.first, moved.last, moved.revision) = (second.first, second.last, second.revision)
    guard moved == second else { return false }
    switch first.outcome {
    case .reduced, .unchanged, .swallowed, .accepted: return true
    case .rejected, .outcomeUnknown: return false
    }
  }

  /// The sessions by number, with the newest outcomes of each. O(sessions + runs).
  public var result: [JournalSession] {
    var sessions = sessions
    for place in sessions.indices {
      guard let last = sessions[place].outcomes.last?.last else { continue }
      let old = sessions[place].outcomes.prefix { last - $0.last >= window }.count
      sessions[place].outcomes.removeFirst(old)
    }
    return sessions.sorted { $0.number < $1.number }
  }

  // MARK: Bytes

  // Encoded as acknowledgements on the wire: a format that already has its versions and tests.

  static func encode(_ runs: [Acknowledgement]) -> [UInt8] {
    var encoder = CBOREncoder()
    encoder.array(runs.count)
    for run in runs { ServerMessage.acknowledgement(run).encode(into: &encoder) }
    return encoder.bytes
  }

  /// Nil when the bytes are not outcomes.
  static func decode(_ bytes: UnsafeRawBufferPointer) -> [Acknowledgement]? {
    do {
      var decoder = CBORDecoder(bytes)
      let count = try decoder.array()
      var runs: [Acknowledgement] = []
      for _ in 0..<count {
        guard
          case .acknowledgement(let run) =
            try ServerMessage(try decoder.rawItem(), seed: .unseeded)
        else { return nil }
        // In order, without gaps: code that calculates with them relies on it.
        guard run.first <= run.last, run.last < .max,
          runs.last.map({ $0.last + 1 == run.first }) ?? true
        else { return nil }
        runs.append(run)
      }
      return decoder.isAtEnd ? runs : nil
    } catch {
      return nil
    }
  }
}
