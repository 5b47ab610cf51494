import ClientCore
import Glibc
import Lockstep
import LockstepClient
import Observation
import Synchronization
import Testing
import Values
import Wire

// These tests would deadlock or trap if a closure ran under one of our locks, which are not
// recursive.
extension BoardMirror {
  /// Uses every member of the mirror that does not wait.
  fileprivate func useEverything() {
    _ = (
      state.count, self.count, self.panel, stateObservers, changes, observe(\.count),
      pulses(\.alerts)
    )
    subscription.useEverything()
    // Has no effect after the first time, so that the observers that call this function terminate.
    post(.load(true))
    bind(to: self) { _, _ in }
  }
}

extension Subscription<BoardState> {
  fileprivate func useEverything() {
    _ = (state, position, snapshot, digest, counters, status, path)
    _ = (statuses, changes, revisions, changes(of: { $0?.count }))
    let panel: Subscription<Panel> = connection.subscribe(to: [4])
    _ = panel.state
    post(BoardAction.load(true))
    connection.useEverything()
  }
}

extension Connection {
  fileprivate func useEverything() {
    _ = (state, states, welcome, schema, sessionNumber, unacknowledged, rejections)
    _ = (divergences, lastDivergence, reports("log.follow"))
    post(BoardAction.load(true))
  }
}

/// Calls a closure when it is freed.
/// Calls that one thread makes, and the closures that ran on it meanwhile.
private final class Calls: Sendable {
  private let caller = Atomic<UInt>(0)
  private let closures = Atomic(0)
  private let done = Atomic(false)

  var areDone: Bool { done.load(ordering: .acquiring) }
  var onTheirThread: Int { closures.load(ordering: .acquiring) }

  /// Count a closure, if it runs within a call.
  func count() {
    if caller.load(ordering: .acquiring) == pthread_self() {
      closures.add(1, ordering: .acquiringAndReleasing)
    }
  }

  @concurrent func make(_ call: @Sendable () -> Void) async {
    for _ in 0..<20_000 {
      caller.store(pthread_self(), ordering: .releasing)
      call()
      caller.store(0, ordering: .releasing)
    }
    done.store(true, ordering: .releasing)
  }
}

private final class Farewell: Sendable {
  private let body: @Sendable () -> Void

  init(_ body: @escaping @Sendable () -> Void) { self.body = body }

  deinit { body() }
}

@Suite struct ClosureTests {
  @Test func `the part of changes(of:) uses the mirror`() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let counts = mirror.subscription.changes { [weak mirror] state -> Int? in
        mirror?.useEverything()
        return state?.count
      }
      var iterator = counts.makeAsyncIterator()
      #expect(await iterator.next() == 0)
      try await mirror.send(.increment)
      while let count = await iterator.next(), count != 1 {}
      #expect(mirror.isLoading)
      await mirror.connection.finish()
      while await iterator.next() != nil {}
    }
  }

  @Test func `an observer of a property uses the mirror`() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let told = Recorder<Int>()
      withObservationTracking {
        mirror.useEverything()
      } onChange: {
        mirror.useEverything()
        told.append(mirror.count)
      }
      try await mirror.send(.increment)
      await eventually { !told.all.isEmpty }
      await mirror.connection.finish()
    }
  }

  private final class View: Sendable {
    let binds = Recorder<Int>()
    let counts = Recorder<Int>()
    let alerts = Recorder<String?>()
  }

  @Test func `the closures of a binding use the mirror, also with a new daemon`() async throws {
    try await withDaemon { socket, daemon in
      let mirror = try await BoardMirror.connect(.at(socket))
      let view = View()
      mirror.bind(to: view) { [weak view] mirror, bindings in
        mirror.useEverything()
        view?.binds.append(mirror.count)
        bindings.observe(\.count) { [weak mirror, weak view] in
          mirror?.useEverything()
          view?.counts.append($0)
        }
        bindings.pulses(\.alerts) { [weak mirror, weak view] in
          mirror?.useEverything()
          view?.alerts.append($0)
        }
      }
      await eventually { view.counts.all == [0] }
      try await mirror.send(.increment)
      await eventually { view.counts.all == [0, 1] }
      await eventually {
        mirror.post(.alert("a"))
        return view.alerts.all.contains("a")
      }
      await daemon.stop()
      var state = BoardState()
      state.count = 7
      let second = try await HostedDaemon(socket, state: state)
      await eventually { view.binds.all == [0, 7] && view.counts.all.last == 7 }
      await mirror.connection.finish()
      await second.stop()
    }
  }

  /// Each reader runs inside the call that yields to it, resumes it or finishes it.
  @Test func `readers of every sequence use the mirror while an element is delivered`() async throws
  {
    try await withDaemon { socket, daemon in
      let mirror = try await BoardMirror.connect(.at(socket))
      let (heard, ended) = (Recorder<String>(), Recorder<String>())
      func read<S: AsyncSequence & Sendable>(_ name: String, _ sequence: S)
      where S.Element: Sendable {
        Task(executorPreference: InPlace()) {
          do {
            for try await _ in sequence {
              mirror.useEverything()
              heard.append(name)
            }
          } catch {}
          mirror.useEverything()
          ended.append(name)
        }
      }
      let (subscription, connection) = (mirror.subscription, mirror.connection)
      read("changes", mirror.changes)
      read("observe", mirror.observe(\.count))
      read("pulses", mirror.pulses(\.alerts))
      read("subscription.changes", subscription.changes)
      read("statuses", subscription.statuses)
      read("revisions", subscription.revisions)
      read("states", connection.states)
      read("reports", connection.reports("log.follow"))
      try await mirror.send(.increment)
      try await mirror.send(.alert("a"))
      try await mirror.send(.alert("b"))
      await eventually { Set(heard.all).count == 8 }
      // Reports end with the connection; the other sequences continue after a reconnection.
      await daemon.stop()
      await eventually { ended.all == ["reports"] }
      let second = try await HostedDaemon(socket)
      await eventually { subscription.status == .live }
      try await mirror.send(.increment)
      connection.close()
      await eventually { ended.count == 8 }
      await second.stop()
    }
  }

  @Test func `a waiting task uses the mirror while its answer is delivered`() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let (subscription, connection) = (mirror.subscription, mirror.connection)
      let done = Recorder<String>()
      func wait(_ name: String, _ body: @escaping @Sendable () async throws -> Void) async {
        await Task(executorPreference: InPlace()) {
          do {
            try await body()
            done.append(name)
          } catch {
            done.append("\(name) fails")
          }
          mirror.useEverything()
        }.value
      }
      let waits: [(String, @Sendable () async throws -> Void)] = [
        ("send", { try await mirror.send(.increment) }),
        ("connected", { try await connection.connected() }),
        ("ping", { _ = try await connection.ping() }),
        ("report", { _ = try await connection.report("status") }),
        ("daemonDigest", { _ = try await subscription.daemonDigest() }),
        ("reached", { try await subscription.reached(revision: 1) }),
      ]
      for (name, body) in waits { await wait(name, body) }
      await wait("refused") { try await mirror.send(.refuse) }
      let late = Task { await wait("never") { try await subscription.reached(revision: 1_000) } }
      try await mirror.send(.increment)
      connection.close()
      await late.value
      for (name, body) in waits { await wait("closed \(name)", body) }
      #expect(
        done.all == waits.map(\.0) + ["refused fails", "never fails"]
          + waits.map { "closed \($0.0) fails" })
    }
  }

  /// The thread may hold a lock that the closure takes.
  @Test func `a thread that calls the connection runs no closure that the loop has queued`()
    async throws
  {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let calls = Calls()
      let counts = mirror.subscription.changes { state -> Int? in
        calls.count()
        return state?.count
      }
      async let called: Void = calls.make { _ = mirror.connection.states }
      while !calls.areDone { try await mirror.send(.increment) }
      await called
      #expect(calls.onTheirThread == 0)
      await mirror.connection.finish()
      for await _ in counts {}
    }
  }

  @Test func `a value that an observer holds uses the connection while it is freed`() async throws {
    try await withDaemon { socket, _ in
      let mirror = try await BoardMirror.connect(.at(socket))
      let gone = Recorder<String>()
      func read(_ name: String) -> Task<Void, Never> {
        let farewell = Farewell {
          mirror.useEverything()
          gone.append(name)
        }
        let counts = mirror.subscription.changes { state -> Int? in
          withExtendedLifetime(farewell) { state?.count }
        }
        return Task { for await _ in counts {} }
      }
      let reader = read("cancelled")
      _ = read("closed")
      do {
        let unread = Farewell {
          mirror.useEverything()
          gone.append("unread")
        }
        _ = mirror.subscription.changes { state -> Int? in
          withExtendedLifetime(unread) { state?.count }
        }
      }
      await eventually { gone.all == ["unread"] }
      reader.cancel()
      await eventually { gone.all == ["unread", "cancelled"] }
      mirror.connection.close()
      await eventually { gone.all == ["unread", "cancelled", "closed"] }
    }
  }
}
