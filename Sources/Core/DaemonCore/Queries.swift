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
  /// Looks at the state that were refused while the shell takes them. Their numbers are free when it
  /// has answered.
  private var stale: Set<UInt64> = []
  /// Answers of the shell as CBOR, sent at the turn's end.
  private var answers: [Answer] = []

  struct Answer: Sendable {
    let query: UInt64
    var report: [UInt8]
    /// Whether the report shows something of the state.
    let isInspection: Bool
  }
  /// Queries that were ended because the client may not ask them any more.
  private var revoked: [UInt64] = []

  /// Whether it is as one that nothing was asked of.
  var isVacant: Bool {
    following == nil && asked.isEmpty && inspection == nil && stale.isEmpty && answers.isEmpty
      && revoked.isEmpty
  }

  /// Whether the shell is still to answer a query.
  var areAsked: Bool { !asked.isEmpty }

  /// Have the shell answer a query. Returns false if it is to answer one of this number already.
  mutating func ask(_ query: UInt64) -> Bool {
    !stale.contains(query) && asked.insert(query).inserted
  }

  /// Have the shell look at the state. Returns false if it is to do that already.
  mutating func askInspection(_ query: UInt64) -> Bool {
    guard inspection == nil, ask(query) else { return false }
    inspection = query
    return true
  }

  /// Whether the shell is to answer a query.
  func awaits(_ query: UInt64) -> Bool { asked.contains(query) && !stale.contains(query) }

  /// Note the shell's answer. Returns false if no query of this number was asked, or another one of
  /// this number was answered.
  mutating func answer(_ query: UInt64, _ report: [UInt8]) -> Bool {
    guard stale.remove(query) == nil, asked.remove(query) != nil else { return false }
    let isInspection = inspection == query
    if isInspection { inspection = nil }
    answers.append(Answer(query: query, report: report, isInspection: isInspection))
    return true
  }

  /// Refuse the look at the state that is being taken, or has been and was not sent: it shows what
  /// might not be seen any more.
  mutating func revokeInspection() {
    let error = ReportError(.restarting, "the policy has changed meanwhile: ask again")
    for index in answers.indices where answers[index].isInspection {
      answers[index].report = error.report.encoded
    }
    guard let query = inspection, answer(query, error.report.encoded) else { return }
    stale.insert(query)
  }

  /// Take the queries that the shell has not answered, in order: it answers none of them any more. Not
  /// inlined, as `[ConnectionID].inOrder`.
  @inline(never)
  mutating func takeAsked() -> [UInt64] {
    if asked.isEmpty { return [] }
    defer { (asked, inspection, stale) = ([], nil, []) }
    return asked.sorted()
  }

  /// Whether an answer or a refusal is to be sent.
  var owesNews: Bool { !answers.isEmpty || !revoked.isEmpty }

  mutating func takeAnswers() -> [Answer] {
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

extension Boxed<Queries> {
  /// Whether there are some that owe an answer or a refusal.
  var oweNews: Bool {
    @inline(__always) get {
      if isEmpty { return false }
      return value?.owesNews == true
    }
  }

  /// Whether there is one that follows the log, and is behind.
  var isFollowingBehind: Bool {
    @inline(__always) get {
      if isEmpty { return false }
      return value?.following?.isBehind == true
    }
  }
}
