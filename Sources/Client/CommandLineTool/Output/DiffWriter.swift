import CBOR
import EventLoop
import LockstepClient
import Values

/// Writes what changes at some watched places: what was there, and what is.
struct DiffWriter {
  /// A path that is watched, of which a subscription follows the beginning.
  struct Place {
    let scope: Path
    /// The keys behind the scope; `*` is every key.
    let steps: [PathKey]
    /// The scope's value when it was looked at last. The inner nil means that there was none.
    fileprivate var last: Value??

    init(scope: Path, steps: [PathKey]) {
      self.scope = scope
      self.steps = steps
    }
  }

  /// A revision that is still to be written.
  private struct Pending {
    let revision: UInt64
    let changes: [PlaceChange]
    let isFirst: Bool
    /// Whether it is a snapshot, which no single action made.
    let isSnapshot: Bool
  }

  private let output: Output
  private let conditions: [UntilCondition]
  private let limit: Int?
  /// Whether each revision is written with the action that made it.
  private let namesActions: Bool
  private let leavesOutFirst: Bool
  private var places: [Place]
  private var pending: [Pending] = []
  /// The actions that changed something, by the revision that each made, as far as they are needed.
  private var makers: [UInt64: LogRecord] = [:]
  /// The newest revision of which the log has told.
  private var told: UInt64
  private var written = 0

  init(
    output: Output, places: [Place], conditions: [UntilCondition], limit: Int?,
    namesActions: Bool, told: UInt64 = 0, leavesOutFirst: Bool
  ) {
    self.told = told
    self.output = output
    self.places = places
    self.conditions = conditions
    self.limit = limit
    self.namesActions = namesActions
    self.leavesOutFirst = leavesOutFirst
  }

  /// Note the value of a place's scope at a revision, and write what can be written. Returns whether
  /// all has been written that is wanted.
  mutating func note(
    _ value: Value?, at revision: UInt64, of place: Int, isSnapshot: Bool = false
  ) throws(Failure) -> Bool {
    let former = places[place].last
    places[place].last = .some(value)
    let changes = try changes(from: former ?? nil, to: value, of: places[place])
    let isFirst = former == nil
    if !changes.isEmpty, !isFirst || !leavesOutFirst {
      pending.append(
        Pending(
          revision: revision, changes: changes, isFirst: isFirst, isSnapshot: isSnapshot))
    }
    return try writePending()
  }

  private func changes(
    from old: Value?, to new: Value?, of place: Place
  ) throws(Failure) -> [PlaceChange] {
    do {
      return try PlaceChange.all(from: old, to: new, at: place.scope, along: place.steps[...])
    } catch {
      throw Failure(.goodbye, "the values cannot be compared: \(error).")
    }
  }

  /// Note what the log tells, and write what waited for it. Returns whether all has been written
  /// that is wanted.
  mutating func note(_ records: [LogRecord]) throws(Failure) -> Bool {
    for record in records {
      guard let revision = record.revision else { continue }
      told = max(told, revision)
      if record.outcome.word == "changed" { makers[revision] = record }
    }
    forgetMakers()
    return try writePending()
  }

  /// Whether the values are those that `--until` waits for.
  private var isFulfilled: Bool {
    !conditions.isEmpty
      && conditions.allSatisfy { condition in
        places.contains { place in
          guard let last = place.last, place.scope.leads(to: condition.path) else { return false }
          return condition.holds(in: last, at: place.scope)
        }
      }
  }

  // MARK: Writing

  /// Write what waits for the log, which tells no more.
  mutating func finish() throws(Failure) {
    for next in pending { try write(next) }
    pending = []
  }

  private mutating func writePending() throws(Failure) -> Bool {
    while let next = pending.first {
      // What was there at the beginning was made by many.
      if namesActions, !next.isSnapshot, !next.isFirst, told < next.revision { return false }
      pending.removeFirst()
      try write(next)
      written += 1
      if written == limit { return true }
    }
    return isFulfilled
  }

  /// Changes come a little later than what the log tells of them, or not at all if they are elsewhere.
  private mutating func forgetMakers() {
    if makers.count < 16_384 { return }
    makers = makers.filter { $0.key + 8192 > told }
  }

  private func write(_ revision: Pending) throws(Failure) {
    let maker: LogRecord?? =
      namesActions && !revision.isFirst
      ? .some(revision.isSnapshot ? nil : makers[revision.revision]) : nil
    try output.show(
      RevisionChanges(revision: revision.revision, changes: revision.changes), by: maker)
  }
}

/// What a revision changed at some places.
struct RevisionChanges {
  let revision: UInt64
  let changes: [PlaceChange]
}

extension RevisionChanges {
  /// The changes as JSON, with the action that made them if that is asked for; the inner nil means that
  /// it is not known.
  func value(by maker: LogRecord??) -> Value {
    var members: TrieMap<String, Value> = [
      "revision": Value(revision), "changes": .array(TreeArray(changes.map(\.form))),
    ]
    if let maker { members.updateValue(maker?.value ?? .null, forKey: "action") }
    return .object(members)
  }
}

extension Output {
  /// Show what a revision changed, with the action that made it if that is asked for; the inner nil
  /// means that it is not known.
  func show(_ revision: RevisionChanges, by maker: LogRecord??) throws(Failure) {
    guard isPretty else { return try line(revision.value(by: maker)) }
    let head = "revision \(revision.revision)\((maker ?? nil)?.head ?? "")".cut(to: width)
    try lines(([faint(head)] + revision.changes.map { $0.line(self) }).joined(separator: "\n"))
  }
}

extension LogRecord {
  /// The action behind the number of the revision that it made.
  fileprivate var head: String {
    let time = value.cell("time").dayAndSecond
    let label = value.child("label").map { " \"\($0.cell)\"" } ?? ""
    return "  \(time)  #\(sequence) \(value.cell("action")), \(value.cell("origin"))\(label)"
      .escapingControls
  }
}

extension PlaceChange {
  /// The change as JSON: without `from` where there was nothing, and without `to` where there is
  /// nothing.
  var form: Value {
    var members: TrieMap<String, Value> = ["path": .text(path.pointer)]
    if let old { members.updateValue(old, forKey: "from") }
    if let new { members.updateValue(new, forKey: "to") }
    return .object(members)
  }

  /// The change on a line that fits the terminal, with a sign and a colour for what happened.
  func line(_ output: Output, indent: Int = 0) -> String {
    let place = path.keys.isEmpty ? "''" : path.pointer.escapingControls
    let room = max(20, output.width - indent - place.columns - 4)
    func text(_ value: Value, _ room: Int) -> String {
      PrettyWriter.text(value, width: .max, hasColor: false).cut(to: room)
    }
    switch (old, new) {
    case (let old?, let new?):
      let (before, after) = (text(old, room / 2 - 2), text(new, room / 2 - 2))
      return "\(output.colored("~", "33")) \(place)  \(output.colored(before, "31")) → "
        + output.colored(after, "32")
    case (nil, let new?): return output.colored("+ \(place)  \(text(new, room))", "32")
    case (let old?, nil): return output.colored("- \(place)  \(text(old, room))", "31")
    case (nil, nil): return "  \(place)"
    }
  }
}
