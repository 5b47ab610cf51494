import Values

/// What is known of a daemon from looks at it: the newest one, and how fast its counters grow.
///
/// A rate is the difference of a counter between two looks by the time between them. There is none
/// for what the look before did not have, and none where the counter has begun anew: behind a
/// restart of the daemon, or if it is smaller than it was.
struct TopModel: Sendable {
  struct ClientRow: Sendable {
    let connection: UInt64
    let pid: UInt64
    let uid: UInt64
    let label: String
    /// Whether it is the connection of this command.
    let isOwn: Bool
    let actionsPerSecond: Double?
    let bytesPerSecond: Double?
    let lagRevisions: UInt64
    /// Nil for those who may not see the whole state.
    let lagBytes: UInt64?
    let lagMs: UInt64
    let scopes: String
    let value: Value
  }

  struct ActionRow: Sendable {
    let name: String
    /// Since the first look, and as many as the log had then.
    var count: UInt64 = 0
    var rejected: UInt64 = 0
    /// In the last look.
    var recent: UInt64 = 0
    var perSecond: Double?
  }

  struct EffectRow: Sendable {
    let id: String
    let name: String
    let key: String
    let action: String
    let startedMs: UInt64
    let sent: UInt64
    let client: String
    let value: Value
  }

  /// How fast the counters of a status grow.
  struct Rates: Sendable, Equatable {
    var actions: Double?
    var rejected: Double?
    var revisions: Double?
    var snapshots: Double?
    var coalesced: Double?
    /// To all clients but this one, whose looks are not what one looks for.
    var bytes: Double?
    /// The processor's time that the daemon takes, of one processor.
    var processor: Double?
  }

  /// The label and the process of this command's own connection.
  let own: (label: String, pid: UInt64)
  private(set) var look: TopLook?
  /// Between the last two looks; nil behind the first one and behind a restart.
  private(set) var seconds: Double?
  private(set) var rates = Rates()
  private(set) var clients: [ClientRow] = []
  private(set) var effects: [EffectRow] = []
  private var actionsByName: [String: ActionRow] = [:]
  /// The number of the newest action that was seen.
  private(set) var newest: UInt64?
  /// The actions of the last look, and those of them whose names were not seen.
  private(set) var newActions: UInt64 = 0
  private(set) var unseenActions: UInt64 = 0

  /// A daemon whose actions have more names than this has the others among those not seen.
  private static let mostNames = 1000

  init(label: String, pid: UInt64) { own = (label, pid) }

  var actions: [ActionRow] { Array(actionsByName.values) }

  /// Take the next look.
  mutating func add(_ look: TopLook) {
    let before = self.look.flatMap { $0.isOfSameRun(as: look) ? $0 : nil }
    seconds = before.map { ($0.time.duration(to: look.time)).inSeconds }
    if let length = seconds, length <= 0 { seconds = nil }
    if before == nil {
      newest = nil
      actionsByName = [:]
    }
    addRates(look, before)
    addClients(look, before)
    addActions(look)
    effects = (look.effects.contents ?? []).map(EffectRow.init)
    self.look = look
  }

  private func rate(_ now: UInt64?, _ before: UInt64?) -> Double? {
    guard let seconds, let now, let before, now >= before else { return nil }
    return Double(now - before) / seconds
  }

  private mutating func addRates(_ look: TopLook, _ before: TopLook?) {
    func rate(_ name: String) -> Double? {
      self.rate(look.status.child(.text(name))?.number, before?.status.child(.text(name))?.number)
    }
    rates = Rates(
      actions: rate("actions"), rejected: rate("rejected"), revisions: rate("revision"),
      snapshots: rate("snapshots"), coalesced: rate("coalesced"))
    if let now = look.process, let then = before?.process, let seconds, now.seconds >= then.seconds
    {
      rates.processor = (now.seconds - then.seconds) / seconds
    }
  }

  private mutating func addClients(_ look: TopLook, _ before: TopLook?) {
    var old: [UInt64: Value] = [:]
    for row in before?.clients.contents ?? [] {
      if let number = row.child("connection")?.number { old[number] = row }
    }
    clients = (look.clients.contents ?? []).map { row in
      let number = row.child("connection")?.number ?? 0
      // Of the same process: connections of another daemon might have the same numbers.
      let then = old[number].flatMap { $0.child("pid") == row.child("pid") ? $0 : nil }
      func rate(_ name: PathKey) -> Double? {
        self.rate(row.child(name)?.number, then?.child(name)?.number)
      }
      return ClientRow(
        row, own: own, actionsPerSecond: rate("actions"), bytesPerSecond: rate("bytesSent"))
    }
    let known = clients.filter { !$0.isOwn }.compactMap(\.bytesPerSecond)
    rates.bytes = known.isEmpty ? nil : known.reduce(0, +)
  }

  private mutating func addActions(_ look: TopLook) {
    actionsByName = actionsByName.mapValues { row in
      var row = row
      (row.recent, row.perSecond) = (0, nil)
      return row
    }
    (newActions, unseenActions) = (0, 0)
    guard let log = look.log.contents else { return }
    // The log of a daemon that has begun anew begins anew.
    if let last = newest, log.newest < last { newest = nil }
    let isFirst = newest == nil
    let records = log.records.filter { $0.sequence > newest ?? 0 }
    newActions = isFirst ? UInt64(records.count) : log.newest - (newest ?? 0)
    var seen: UInt64 = 0
    for record in records {
      let name = record.value.cell("action")
      guard actionsByName[name] != nil || actionsByName.count < Self.mostNames else { continue }
      seen += 1
      actionsByName[name, default: ActionRow(name: name)].note(record)
    }
    unseenActions = newActions - min(seen, newActions)
    if !isFirst, let seconds {
      actionsByName = actionsByName.mapValues { row in
        var row = row
        row.perSecond = Double(row.recent) / seconds
        return row
      }
    }
    newest = log.newest
  }
}

extension TopLook {
  /// Whether two looks are at the same life of the same daemon, so that its counters go on.
  fileprivate func isOfSameRun(as later: TopLook) -> Bool {
    guard ["epoch", "run", "pid"].allSatisfy({ status.child($0) == later.status.child($0) }) else {
      return false
    }
    let (was, now) = (status.child("uptimeMs")?.number, later.status.child("uptimeMs")?.number)
    return (was ?? 0) <= (now ?? 0)
  }
}

extension TopModel.ActionRow {
  fileprivate mutating func note(_ record: LogRecord) {
    count += 1
    recent += 1
    if record.outcome.word == "rejected" { rejected += 1 }
  }
}

extension TopModel.EffectRow {
  fileprivate init(_ value: Value) {
    id = value.cell("id")
    name = value.cell("name")
    key = value.cell("key")
    action = value.cell("action")
    startedMs = value.child("startedMs")?.number ?? 0
    sent = value.child("sent")?.number ?? 0
    client = value.cell("client")
    self.value = value
  }
}

extension TopModel.ClientRow {
  fileprivate init(
    _ value: Value, own: (label: String, pid: UInt64), actionsPerSecond: Double?,
    bytesPerSecond: Double?
  ) {
    connection = value.child("connection")?.number ?? 0
    pid = value.child("pid")?.number ?? 0
    uid = value.child("uid")?.number ?? 0
    label = value.cell("label")
    isOwn = pid == own.pid && String.isSame(label, own.label)
    self.actionsPerSecond = actionsPerSecond
    self.bytesPerSecond = bytesPerSecond
    lagRevisions = value.child("lagRevisions")?.number ?? 0
    lagBytes = value.child("lagBytes")?.number
    lagMs = value.child("lagMs")?.number ?? 0
    scopes = value.scopes
    self.value = value
  }
}
