import Values
import Wire

/// The queries of one connection that are answered later than in the turn after them: by the shell,
/// or with each new action.
struct Queries: Sendable {
  /// The query that is answered with every new action.
  var following: Following?
  /// Queries that the shell has not answered yet.
  private var asked: Set<UInt64> = []
  /// The one of them that looks at the state.
  private var inspection: UInt64?
  /// Answers of the shell as CBOR, sent at the turn's end.
  private var answers: [(query: UInt64, answer: [UInt8])] = []
  /// Queries that were ended because the client may not ask them any more.
  private var revoked: [UInt64] = []

  /// Whether the shell is still to answer a query.
  var areAsked: Bool { !asked.isEmpty }

  /// Have the shell answer a query. Returns false if it is to answer one of this number already.
  mutating func ask(_ query: UInt64) -> Bool { asked.insert(query).inserted }

  /// Have the shell look at the state. Returns false if it is to do that already.
  mutating func askInspection(_ query: UInt64) -> Bool {
    guard inspection == nil, ask(query) else { return false }
    inspection = query
    return true
  }

  /// Note the shell's answer. Returns false if no query of this number was asked, or another one of
  /// this number was answered.
  mutating func answer(_ query: UInt64, _ answer: [UInt8]) -> Bool {
    guard asked.remove(query) != nil else { return false }
    if inspection == query { inspection = nil }
    answers.append((query, answer))
    return true
  }

  /// Refuse the look at the state that is being taken: it shows what might not be seen any more.
  mutating func revokeInspection() {
    guard let inspection else { return }
    let error = ReportError(.restarting, "the policy has changed meanwhile: ask again")
    _ = answer(inspection, error.report.encoded)
  }

  /// Take the queries that the shell has not answered, in order: it answers none of them any more.
  mutating func takeAsked() -> [UInt64] {
    if asked.isEmpty { return [] }
    defer { (asked, inspection) = ([], nil) }
    return asked.sorted()
  }

  /// Whether an answer or a refusal is to be sent.
  var owesNews: Bool { !answers.isEmpty || !revoked.isEmpty }

  mutating func takeAnswers() -> [(query: UInt64, answer: [UInt8])] {
    if answers.isEmpty { return [] }
    defer { answers = [] }
    return answers
  }

  /// End the query that is answered with every new action, and refuse it at the turn's end.
  mutating func revokeFollowing() {
    if let following { revoked.append(following.query) }
    following = nil
  }

  mutating func takeRevoked() -> [UInt64] {
    if revoked.isEmpty { return [] }
    defer { revoked = [] }
    return revoked
  }
}

/// A query that is answered with every action from a sequence number on, until it ends.
struct Following: Sendable {
  let query: UInt64
  /// The number of the last action that was sent.
  var sequence: UInt64
  /// Whether there are actions after it.
  var isBehind: Bool
}
