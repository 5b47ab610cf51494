import Documents
import Synchronization
import Values

/// What is to be sent to a page: answers in order, and of everything else the newest. A page that does
/// not read costs memory for what it has asked, and no more.
final class InspectorOutbox: Sendable {
  fileprivate struct State: Sendable {
    var answers: [String] = []
    var connection: Value?
    var look: Value?
    var denial: Value?
    var log = LogPush()
    /// The newest value of each path, in the order in which they changed.
    var values: [(path: String, value: Value)] = []
    var mayTellValues = true
    var isOver = false
    var reader: CheckedContinuation<Void, Never>?
  }

  /// Actions that were not sent yet.
  struct LogPush: Sendable {
    var records: [Value] = []
    var missed: UInt64 = 0
    var total: UInt64 = 0

    /// The most actions of one message.
    static let mostRecords = 200

    /// Add later ones; the oldest make room for them.
    mutating func add(_ later: LogPush) {
      records += later.records
      missed += later.missed
      total = later.total
      let surplus = records.count - Self.mostRecords
      guard surplus > 0 else { return }
      records.removeFirst(surplus)
      missed += UInt64(surplus)
    }

    var message: Value {
      [
        "push": "log", "records": .array(TreeArray(records)), "missed": Value(missed),
        "total": Value(total),
      ]
    }
  }

  private let state = Mutex(State())

  // MARK: What there is to say

  func answer(_ message: Value) {
    change { $0.answers.append(JSON.text(message, sortedKeys: true)) }
  }

  /// What was known of another connection is not news any more.
  func tell(connection: Value) {
    change { state in
      state.connection = connection
      (state.look, state.denial, state.log, state.values) = (nil, nil, LogPush(), [])
    }
  }

  func tell(look: Value) { change { $0.look = look } }

  func tell(denial: Value) { change { $0.denial = denial } }

  func tell(_ log: LogPush) { change { $0.log.add(log) } }

  /// Tell the value of a path, with its revision, or why there is none.
  func tell(_ value: Value, at path: String) {
    change { state in
      state.values.removeAll { String.isSame($0.path, path) }
      state.values.append((path, value))
    }
  }

  /// Forget the values of other paths.
  func keepValues(of paths: Set<String>) {
    change { state in state.values.removeAll { !paths.contains($0.path) } }
  }

  /// Values may be told again: called ten times a second.
  func releaseValues() { change { $0.mayTellValues = true } }

  /// Nothing more is said.
  func end() { change { $0.isOver = true } }

  var isOver: Bool { state.withLock { $0.isOver } }

  private func change(_ body: (inout State) -> Void) {
    let reader = state.withLock { state in
      body(&state)
      defer { state.reader = nil }
      return state.reader
    }
    reader?.resume()
  }

  // MARK: Reading

  /// The next message; nil at the end. One reader at a time.
  func next() async -> String? {
    while true {
      if let found = state.withLock({ $0.take() }) { return found.message }
      await withCheckedContinuation { continuation in
        let isNow = state.withLock { state in
          if state.hasNews { return true }
          state.reader = continuation
          return false
        }
        if isNow { continuation.resume() }
      }
    }
  }
}

extension InspectorOutbox.State {
  var hasNews: Bool {
    isOver || !answers.isEmpty || connection != nil || look != nil || denial != nil
      || log.total > 0 || mayTellValues && !values.isEmpty
  }

  /// Take the next message, whose text is nil at the end; nil if there is nothing to say now.
  mutating func take() -> (message: String?, Void)? {
    if isOver { return (nil, ()) }
    if let connection = connection {
      self.connection = nil
      return (JSON.text(connection, sortedKeys: true), ())
    }
    if !answers.isEmpty { return (answers.removeFirst(), ()) }
    if let denial {
      self.denial = nil
      return (JSON.text(denial, sortedKeys: true), ())
    }
    if mayTellValues, !values.isEmpty {
      let message: Value = ["push": "values", "values": .array(TreeArray(values.map(\.value)))]
      (values, mayTellValues) = ([], false)
      return (JSON.text(message, sortedKeys: true), ())
    }
    if log.total > 0 {
      defer { log = InspectorOutbox.LogPush() }
      return (JSON.text(log.message, sortedKeys: true), ())
    }
    guard let look else { return nil }
    self.look = nil
    return (JSON.text(look, sortedKeys: true), ())
  }
}
