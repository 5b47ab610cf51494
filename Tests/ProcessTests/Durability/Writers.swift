import CBOR
import DaemonCore
import Documents
import Foundation
import LockstepClient
import Synchronization
import TestClient
import Testing
import Values
import Wire

/// The actions of one writer, and their acknowledgements. The writer appends the numbers from 1 on
/// to an array of its own, so the array shows which actions were performed, in which order, and how
/// often.
final class Book: Sendable {
  struct Entries: Sendable {
    /// The last number sent.
    var sent: Int64 = 0
    /// Numbers acknowledged as durable.
    var durable: [Int64] = []
    /// Numbers acknowledged that may be lost, with the reason.
    var applied: [(number: Int64, reason: String?)] = []
    /// Numbers that were rejected: nothing changed.
    var rejected: [(number: Int64, RejectionMessage)] = []
    /// Numbers whose outcome is unknown.
    var unknown: [Int64] = []
    /// Violations.
    var wrong: [String] = []
    /// The number of actions that a killed daemon had kept and not acknowledged.
    var keptUnjournaled = 0
    /// The number of actions that a killed daemon lost, so that they were performed again.
    var doneAnew = 0
    var reconnections = 0
    var isEnding = false
  }

  let name: String
  private let entries = Mutex(Entries())

  init(_ name: String) { self.name = name }

  var path: Path { [.text(name)] }
  var now: Entries { entries.withLock { $0 } }
  var durableCount: Int { entries.withLock { $0.durable.count } }
  var isEnding: Bool { entries.withLock { $0.isEnding } }

  @discardableResult
  func note<R: Sendable>(_ body: (inout Entries) -> R) -> R { entries.withLock { body(&$0) } }

  func next() -> Int64 {
    note {
      $0.sent += 1
      return $0.sent
    }
  }

  func action(_ number: Int64) -> DocumentAction { .append(path, .integer(number)) }

  /// Records the outcome of a number.
  func note(_ number: Int64, _ acknowledgement: Acknowledgement) {
    note { entries in
      switch acknowledgement.outcome {
      case .reduced where acknowledgement.mark == .durable: entries.durable.append(number)
      case .reduced: entries.applied.append((number, acknowledgement.notDurable))
      case .rejected(let rejection): entries.rejected.append((number, rejection))
      case .outcomeUnknown: entries.unknown.append(number)
      case .unchanged, .swallowed, .accepted:
        entries.wrong.append("\(number) became \(acknowledgement.outcome)")
      }
    }
  }

  /// The violations in a document that a daemon continues from: everything promised must be there,
  /// in order, nothing twice, and nothing that was never sent.
  func complaints(
    _ root: Value?, asOf entries: Entries? = nil, isWhole: Bool = false
  ) -> [String] {
    let entries = entries ?? now
    let found = root?[name]?.elements.map { $0.number ?? -1 } ?? []
    var complaints = entries.wrong.map { "\(name): \($0)" }
    if zip(found, found.dropFirst()).contains(where: { $0 >= $1 }) {
      let place = zip(found, found.dropFirst()).first { $0 >= $1 }
      complaints.append("\(name): not in order, or twice: \(String(describing: place))")
    }
    if let last = found.last, last > entries.sent {
      complaints.append("\(name): \(last) is there, and \(entries.sent) was the last to be sent")
    }
    let there = Set(found)
    let lost = entries.durable.filter { !there.contains($0) }
    if !lost.isEmpty { complaints.append("\(name): durable, and lost: \(lost.prefix(10))") }
    let done = entries.rejected.map(\.number).filter(there.contains)
    if !done.isEmpty { complaints.append("\(name): rejected, and done: \(done.prefix(10))") }
    if isWhole {
      let excused = Set(entries.unknown + entries.rejected.map(\.number))
      let missing = (1...max(1, entries.sent)).filter {
        $0 <= entries.sent && !there.contains($0) && !excused.contains($0)
      }
      if !missing.isEmpty { complaints.append("\(name): missing: \(missing.prefix(10))") }
    }
    return complaints
  }
}

/// Writes through the client library, one action after the other, across any number of daemons.
final class LibraryWriter: Sendable {
  let book: Book
  let replica: Subscription<Value>
  private let home: Home
  private let done = Mutex(false)

  init(_ name: String, _ home: Home) async throws {
    let book = Book(name)
    // It mirrors its own array, so that reading its own writes is checked too.
    let replica = try await home.mirror(of: book.path, label: name)
    (self.book, self.replica, self.home) = (book, replica, home)
    Task {
      await Self.run(book, replica)
      done.withLock { $0 = true }
    }
  }

  private static func run(_ book: Book, _ replica: Subscription<Value>) async {
    while !book.isEnding {
      let number = book.next()
      do {
        let acknowledgement = try await replica.send(book.action(number), .durable)
        let shown = replica.state?.elements.last?.number
        book.note(number, acknowledgement)
        // Unless it was lost since, with a killed daemon.
        if shown != number, acknowledgement.mark == .durable {
          book.note { $0.wrong.append("\(number) is acknowledged, and \(shown ?? 0) shown") }
        }
      } catch ClientError.rejected(let rejection) {
        book.note { $0.rejected.append((number, rejection)) }
      } catch ClientError.outcomeUnknown {
        book.note { $0.unknown.append(number) }
      } catch {
        return book.note { $0.wrong.append("\(number): \(error)") }
      }
    }
  }

  /// Stops sending, and returns when everything sent is answered.
  func end() async throws {
    book.note { $0.isEnding = true }
    do {
      try await eventually("\(book.name) is answered", within: .seconds(60)) {
        done.withLock { $0 }
      }
    } catch {
      // The views of both ends.
      let clients = try await home.lockstep("clients", "--json")
      let status = try await home.lockstep("status", "--json")
      throw ChildProcess.Failure(
        description:
          "\(error): \(replica.status), \(replica.connection.unacknowledged) unacknowledged of "
          + "\(book.now.sent), \(String(describing: replica.position)), \(replica.counters), "
          + "\(String(describing: replica.connection.welcome)); \(clients.lines); \(status.lines)")
    }
    if replica.connection.divergences > 0 {
      book.note { $0.wrong.append("diverged: \(replica.connection.lastDivergence ?? "")") }
    }
  }
}

/// Writes with the bare protocol, many actions at once, on its own thread. A `deaf` writer reads
/// nothing until its connection has ended, and learns the outcomes of its actions later.
final class RawWriter: Sendable {
  let book: Book
  private let home: Home
  private let isDeaf: Bool
  private let done = Mutex(false)
  private let isAbandoned = Mutex(false)
  /// The number of actions that a deaf writer sends before it waits for the end of its connection.
  private static let deafLot = 400

  init(_ name: String, _ home: Home, isDeaf: Bool = false, seed: UInt64) {
    book = Book(name)
    self.home = home
    self.isDeaf = isDeaf
    let thread = Thread { [self] in
      var life = Life(random: SplitMix64(seed))
      while !(book.isEnding && (life.waiting.isEmpty || isAbandoned.withLock { $0 })) {
        do {
          try serve(&life)
        } catch {
          // No daemon is serving.
          usleep(2000)
        }
      }
      done.withLock { $0 = true }
    }
    thread.start()
  }

  var hasEnded: Bool { done.withLock { $0 } }

  /// Stops sending, and returns when everything sent is answered.
  func end() async throws {
    book.note { $0.isEnding = true }
    try await eventually("\(book.name) is answered", within: .seconds(60)) { hasEnded }
  }

  /// Stops sending, without waiting.
  func abandon() {
    isAbandoned.withLock { $0 = true }
    book.note { $0.isEnding = true }
  }

  /// A session across several connections.
  private struct Life {
    var random: SplitMix64
    var token: SessionToken?
    /// The actions sent and not yet answered: the number in the session, and the number that it
    /// appends.
    var waiting: [(action: UInt64, number: Int64)] = []
    var nextAction: UInt64 = 1
    /// The last action of the session that was acknowledged as durable.
    var lastDurable: UInt64 = 0

    /// The daemon has lost actions that were only applied: the waiting ones take their numbers.
    mutating func follow(_ last: UInt64) {
      let next = waiting.first?.action ?? nextAction
      guard next > last + 1 else { return }
      let lost = next - last - 1
      for index in waiting.indices { waiting[index].action -= lost }
      nextAction -= lost
    }
  }

  private func serve(_ life: inout Life) throws {
    let client = try RawClient(path: home.socket)
    defer { client.close() }
    let welcome = try client.greet(label: book.name, token: life.token)
    book.note { $0.reconnections += 1 }
    if welcome.isResumed {
      if welcome.lastAction < life.lastDurable {
        let durable = life.lastDurable
        book.note {
          $0.wrong.append("action \(durable) was durable, and \(welcome.lastAction) is the last")
        }
      }
      life.follow(welcome.lastAction)
      let kept = life.waiting.count { $0.action <= welcome.lastAction }
      let anew = life.waiting.count - kept
      book.note {
        $0.keptUnjournaled += kept
        $0.doneAnew += anew
      }
      // The daemon answers the kept actions again and performs the lost ones now, in the same
      // order.
      try send(life.waiting, client)
      try read(&life, client)
    } else {
      if life.lastDurable > 0 {
        book.note { $0.wrong.append("a session with durable actions is forgotten") }
      }
      let lost = life.waiting.map(\.number)
      book.note { $0.unknown += lost }
      life.waiting = []
      life.nextAction = 1
      life.lastDurable = 0
    }
    life.token = welcome.token
    while !book.isEnding {
      let size = isDeaf ? Self.deafLot : Int.random(in: 1...24, using: &life.random)
      let lot = (0..<size).map { offset in
        (action: life.nextAction + UInt64(offset), number: book.next())
      }
      // Even if the send fails, these may have been sent.
      life.nextAction += UInt64(size)
      life.waiting += lot
      try send(lot, client)
      if isDeaf {
        try waitForEnd(client)
      } else {
        try read(&life, client)
      }
    }
  }

  private func send(_ lot: [(action: UInt64, number: Int64)], _ client: RawClient) throws {
    var encoder = CBOREncoder()
    for (action, number) in lot {
      Frame.append(to: &encoder) {
        ClientMessage.action(
          number: action, .durable, payload: book.action(number).payload
        ).encode(into: &$0)
      }
    }
    try client.send(encoder.bytes)
  }

  /// Reads acknowledgements until nothing waits.
  private func read(_ life: inout Life, _ client: RawClient) throws {
    while let last = life.waiting.last {
      let answer = try client.acknowledgement()
      while let first = life.waiting.first, first.action <= answer.last {
        life.waiting.removeFirst()
        book.note(first.number, answer)
        if answer.mark == .durable { life.lastDurable = max(life.lastDurable, first.action) }
      }
      if answer.last >= last.action { return }
    }
  }

  /// Reads nothing until the daemon is gone, or the writer is to end.
  private func waitForEnd(_ client: RawClient) throws {
    while !book.isEnding {
      var poll = pollfd(fd: client.descriptor, events: 0, revents: 0)
      if Foundation.poll(&poll, 1, 100) > 0 { throw ChildProcess.Failure(description: "the end") }
    }
    throw ChildProcess.Failure(description: "enough")
  }
}
