import Documents
import EventLoop
import Glibc
import LockstepClient
import SocketPaths
import Synchronization
import Values
import Wire

/// What one page of the inspector sees of a daemon: it asks, is answered, and is told what happens.
///
///     let session = InspectorSession(options)
///     Task { await session.run() }
///     session.receive(text)                                  // from the page
///     while let text = await session.next() { … }            // to the page
///
/// It has a connection of its own to the daemon, and makes another when that is lost.
package final class InspectorSession: Sendable {
  private let socket: String
  private let label: String
  private let outbox = InspectorOutbox()
  private let visible: VisibleValues
  private let client = Mutex<Client?>(nil)
  /// Questions that are not answered yet.
  private let open = Mutex(0)

  /// More questions than this at once are refused.
  private static let mostQuestions = 64

  package init(_ options: InspectorOptions) {
    socket = options.socket
    label = options.label
    visible = VisibleValues(outbox)
  }

  /// The next message to the page; nil when the session has ended. Of what the page has not read, only
  /// the newest is kept.
  package func next() async -> String? { await outbox.next() }

  /// End the session: `run` and `next` return.
  package func end() { outbox.end() }

  // MARK: The page

  /// Take a message of the page. What is none is answered as far as possible, and else ignored.
  package func receive(_ text: String) {
    guard let message = try? JSON.parse(text), let id = message.child("id") else { return }
    guard case .text(let name)? = message.child("ask"),
      let ask = InspectorAnswers.Ask(rawValue: name)
    else {
      return answer(id, Failure(.usage, code: "unknown", "the inspector has no such answer."))
    }
    let isTooMany = open.withLock { open in
      open += 1
      return open > Self.mostQuestions
    }
    Task {
      defer { open.withLock { $0 -= 1 } }
      if isTooMany {
        return answer(
          id, Failure(.refused, code: "limit", "too much is asked at once: ask again later."))
      }
      await answer(id, ask, message)
    }
  }

  private func answer(_ id: Value, _ ask: InspectorAnswers.Ask, _ message: Value) async {
    if ask == .see {
      await see(message)
      return outbox.answer(["id": id, "answer": [:]])
    }
    guard let client = client.withLock({ $0 }) else {
      return answer(id, Failure(.goodbye, code: "closed", "there is no connection to the daemon."))
    }
    do {
      let found = try await InspectorAnswers(client: client, label: label).answer(ask, message)
      outbox.answer(["id": id, "answer": found])
    } catch {
      answer(id, Failure(error) ?? Failure(.goodbye, code: "closed", "the connection was lost."))
    }
  }

  private func answer(_ id: Value, _ failure: Failure) {
    outbox.answer([
      "id": id, "error": ["code": .text(failure.code), "message": .text(failure.message)],
    ])
  }

  private func see(_ message: Value) async {
    guard case .array(let paths)? = message.child("paths") else { return }
    let texts = paths.prefix(VisibleValues.mostPaths).compactMap { path in
      if case .text(let text) = path { text } else { nil }
    }
    await visible.see(Set(texts))
  }

  // MARK: The daemon

  /// Connect, tell what happens, and connect again when the connection is lost, until `end`.
  package func run() async {
    let values = Task { [outbox] in
      while !outbox.isOver, (try? await LoopClock().sleep(for: .milliseconds(100))) != nil {
        outbox.releaseValues()
      }
    }
    defer { values.cancel() }
    while !outbox.isOver {
      do {
        let client = try await Client.connect(to: socket, label: label)
        await use(client)
        outbox.tell(connection: ["push": "connection", "state": "live", "message": ""])
        let failure = await watch(client)
        await use(nil)
        await client.connection.finish()
        tellStale(failure)
      } catch {
        tellStale(Failure(error) ?? Failure(.unreachable, "\(error)"))
      }
      if outbox.isOver { break }
      try? await LoopClock().sleep(for: .milliseconds(500))
    }
    await visible.see([])
  }

  private func use(_ client: Client?) async {
    self.client.withLock { $0 = client }
    await visible.use(client)
  }

  private func tellStale(_ failure: Failure) {
    outbox.tell(
      connection: ["push": "connection", "state": "stale", "message": .text(failure.message)])
  }

  /// Tell what happens until the connection is lost, or the session ends. Returns the reason.
  private func watch(_ client: Client) async -> Failure {
    await withTaskGroup(of: Failure?.self) { group in
      let latency = Latency()
      group.addTask { await Self.reason { try await self.tellLooks(client, latency) } }
      group.addTask { await Self.reason { try await self.tellLog(client) } }
      group.addTask { await Self.reason { try await latency.measure(client) } }
      group.addTask {
        for await state in client.connection.states {
          if case .closed(let goodbye) = state { return Failure(goodbye) }
        }
        return nil
      }
      group.addTask {
        while !self.outbox.isOver {
          do { try await LoopClock().sleep(for: .milliseconds(100)) } catch { return nil }
        }
        return Failure(.goodbye, "the page has gone.")
      }
      var reason: Failure?
      while reason == nil, let ended = await group.next() { reason = ended }
      group.cancelAll()
      return reason ?? Failure(.goodbye, "the connection was lost.")
    }
  }

  /// The reason that something ends; nil if there is none.
  private static func reason(_ body: () async throws -> Void) async -> Failure? {
    do {
      try await body()
      return nil
    } catch is CancellationError {
      return nil
    } catch {
      return Failure(error)
    }
  }

  private func tellLooks(_ client: Client, _ latency: Latency) async throws {
    var model = TopModel(label: label, pid: UInt64(getpid()))
    let view = TopView()
    let looks = TopLooks(client: client, interval: .seconds(1), count: nil, hurries: true)
    try await looks.run { look in
      model.add(look)
      let status = look.status
      outbox.tell(look: [
        "push": "look", "look": model.value(view), "latency": latency.value,
        "past": [
          "since": status.child("pastSince") ?? .null, "newest": status.child("revision") ?? .null,
        ],
      ])
    }
  }

  private func tellLog(_ client: Client) async throws {
    do {
      let newest = try LogRecord.records(of: await client.report(.log, ["1"])).last?.sequence ?? 0
      var last = newest
      var changes = try LogChanges(client, at: [], isShown: true) { _ in }
      for try await records in LogBatches(client, ["\(newest)"], every: .milliseconds(250)) {
        guard let end = records.last?.sequence, end > last else { continue }
        let shown = try await changes.add(
          to: Array(records.suffix(InspectorOutbox.LogPush.mostRecords)))
        let count = end - last
        last = end
        outbox.tell(
          InspectorOutbox.LogPush(
            records: shown.map(\.value), missed: count - min(count, UInt64(shown.count)),
            total: end))
      }
    } catch let failure as Failure where failure.status == .denied {
      outbox.tell(denial: ["push": "denied", "what": "log", "message": .text(failure.message)])
    }
  }
}

/// How long round trips take at present.
private final class Latency: Sendable {
  private let times = Mutex<[Duration]>([])

  /// Measure one round trip each tenth of a second, until the connection is lost.
  func measure(_ client: Client) async throws {
    while true {
      let time = try await client.connection.ping()
      times.withLock { times in
        times.append(time)
        if times.count > 100 { times.removeFirst() }
      }
      try await LoopClock().sleep(for: .milliseconds(100))
    }
  }

  /// In seconds.
  var value: Value {
    var latencies = Latencies()
    let times = times.withLock { $0 }
    for time in times { latencies.add(time) }
    func quantile(_ part: Double) -> Value {
      times.isEmpty ? .null : .double(latencies.quantile(part).inMicroseconds / 1_000_000)
    }
    return ["p50": quantile(0.5), "p99": quantile(0.99), "count": Value(UInt64(times.count))]
  }
}
