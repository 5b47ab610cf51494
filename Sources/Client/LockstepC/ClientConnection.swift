import CLockstep
import ClientCore
import Glibc
import Schemas
import SocketPaths
import Values
import Wire

// Theory of operation
//
// The session decides everything (`ClientSession`). This is the shell around it for callers that have
// a loop of their own: it hands the session what the socket has read and what time it is, whenever the
// caller dispatches, executes the session's commands, and keeps its notices as events until the caller
// takes them. It calls no code of the caller's, so nothing is re-entered.

/// A connection of a program in C.
///
/// Used by one thread at a time, as the interface demands.
final class ClientConnection {
  private(set) var session: ClientSession
  private var commands: [ClientSession.Command] = []
  private var socket: ClientSocket
  /// The daemon's socket; nil while it may be any standard one.
  private var path: String?
  private let waitsForDaemon: Bool
  private var hasBeenLive = false
  /// When to connect.
  private var connectsAt: Instant?
  private var ticksAt: Instant?

  private(set) var state = ClientSession.ConnectionState.connecting
  var events = EventQueue()
  let values = ValueStore()
  /// The texts of the event that was taken last.
  var eventTexts = CTexts()
  /// The places of the event that was taken last.
  var eventPlaces: [(text: UnsafePointer<CChar>, length: Int)] = []
  private var messageTexts = CTexts()
  private(set) var message: UnsafePointer<CChar>?
  private var lastQuery: UInt64 = 0
  /// Why the first attempt to connect failed.
  private var connectError: String?

  private static let tickInterval: Duration = .seconds(1)
  /// A dispatch reads this much at most.
  private static let readShare = 1 << 20
  /// The most bytes of an action before a daemon has told its limit.
  private static let mostBytes = Frame.defaultLimit

  init(
    path: String?, configuration: ClientSession.Configuration, waitsForDaemon: Bool
  ) throws(Failure) {
    var random = SystemRandomNumberGenerator()
    session = ClientSession(configuration, seed: random.next())
    self.path = path
    self.waitsForDaemon = waitsForDaemon
    socket = try ClientSocket()
  }

  /// Begin, and try to connect. Throws when the daemon cannot be reached and is not waited for.
  func start() throws(Failure) {
    perform { session, commands in session.start(at: .now, into: &commands) }
    let error = connectIfDue(at: .now)
    if session.hasEnded {
      errno = error
      throw Failure(LOCKSTEP_ERROR_SYSTEM)
    }
    socket.flush()
    socket.watchForWriting()
  }

  func setMessage(_ text: String) {
    messageTexts.releaseAll()
    message = text.isEmpty ? nil : messageTexts.copy(text)
  }

  // MARK: The loop

  var descriptor: Int32 { socket.poller }
  var isClosed: Bool { session.hasEnded && events.isEmpty }

  /// Milliseconds until something is due; -1 for never.
  var timeout: Int32 {
    if !events.isEmpty { return 0 }
    let due = [connectsAt, ticksAt, socket.deadline].compactMap(\.self).min()
    return due.map { $0.milliseconds(after: .now) } ?? -1
  }

  func dispatch() throws(Failure) {
    values.invalidate()
    releaseEvent()
    if isClosed && socket.isFlushed { throw Failure(LOCKSTEP_ERROR_CLOSED) }
    socket.flush()
    receive()
    // Silence counts as a missed heartbeat only after what has come was read.
    let now = Instant.now
    tickIfDue(at: now)
    connectIfDue(at: now)
    socket.flushReleased(at: now)
    socket.flush()
    socket.watchForWriting()
  }

  /// Dispatch and sleep until an event waits or the time is up. Returns whether an event waits.
  func wait(milliseconds: Int32) throws(Failure) -> Bool {
    let end = milliseconds < 0 ? nil : Instant.now + .milliseconds(Int64(milliseconds))
    while true {
      if !events.isEmpty {
        flush()
        return true
      }
      try dispatch()
      if !events.isEmpty { return true }
      let left = end?.milliseconds(after: .now)
      if left == 0 { return false }
      let due = timeout
      if socket.wait(milliseconds: left.map { due < 0 ? $0 : min($0, due) } ?? due) {
        errno = EINTR
        throw Failure(LOCKSTEP_ERROR_SYSTEM)
      }
    }
  }

  /// Write what waits. Returns whether nothing waits any more.
  @discardableResult
  func flush() -> Bool {
    socket.flushReleased(at: .now)
    socket.flush()
    socket.watchForWriting()
    return socket.isFlushed
  }

  private func receive() {
    var share = Self.readShare
    while share > 0 {
      switch socket.read() {
      case .bytes(let bytes, let isLast):
        share -= bytes.count
        perform { session, commands in session.received(bytes, at: .now, into: &commands) }
        if isLast { return }
      case .nothing: return
      case .end:
        socket.drop()
        ticksAt = nil
        return perform { session, commands in session.disconnected(at: .now, into: &commands) }
      }
    }
  }

  private func tickIfDue(at now: Instant) {
    guard let due = ticksAt, now >= due else { return }
    ticksAt = now + Self.tickInterval
    perform { session, commands in session.tick(at: now, into: &commands) }
  }

  /// Returns the error of the system if an attempt to connect failed, else 0.
  @discardableResult
  private func connectIfDue(at now: Instant) -> Int32 {
    guard let due = connectsAt, now >= due else { return 0 }
    connectsAt = nil
    // A daemon that is waited for may come to listen on another standard place.
    let place = path ?? SocketPath.standard
    let error = socket.open(place)
    guard error != 0 else {
      // From now on this daemon is meant, and no other.
      path = place
      ticksAt = now + Self.tickInterval
      perform { session, commands in session.connected(at: now, into: &commands) }
      return 0
    }
    // A daemon whose queue of connections is full is there.
    let isFatal = !hasBeenLive && !waitsForDaemon && error != EAGAIN
    if isFatal { connectError = "cannot connect to \(place): \(String(cString: strerror(error)))" }
    perform { session, commands in
      if isFatal {
        session.close(into: &commands)
      } else {
        session.disconnected(at: now, into: &commands)
      }
    }
    return error
  }

  // MARK: The session

  /// Change the session, and execute its commands.
  private func perform(
    _ body: (inout ClientSession, inout [ClientSession.Command]) -> Void
  ) {
    body(&session, &commands)
    while !commands.isEmpty {
      let batch = commands
      commands.removeAll()
      for command in batch { execute(command) }
    }
  }

  private func execute(_ command: ClientSession.Command) {
    switch command {
    case .connect(let wait): connectsAt = .now + wait
    case .send(let bytes): socket.send(bytes)
    case .disconnect:
      socket.release(at: .now)
      (ticksAt, connectsAt) = (nil, nil)
      session.disconnected(at: .now, into: &commands)
    case .notify(let notice): note(notice)
    }
  }

  private func note(_ notice: ClientSession.Notice) {
    switch notice {
    case .connection(let new): note(new)
    case .changed(let subscription): events.appendChange(of: subscription)
    case .patched(let subscription, let patch):
      events.appendPatch(patch, of: subscription)
    case .refused(let subscription, let reason):
      events.append(
        .refused(
          subscription, code: reason.rawValue, "the daemon refuses the subscription: \(reason)"))
    case .unreadable(let subscription, let goodbye):
      events.append(
        .refused(
          subscription, code: UInt64(LOCKSTEP_REFUSAL_UNREADABLE.rawValue), goodbye.message))
    case .acknowledged(let actions, let acknowledgement, _):
      events.append(.outcome(actions, acknowledgement))
    case .report(let query, let value): events.append(.report(query, value))
    // The session has dealt with the others itself.
    case .pong, .digest, .schema, .diverged, .revised: break
    }
  }

  private func note(_ new: ClientSession.ConnectionState) {
    if case .stale(_, nil) = new {
      // Failed attempts to connect repeat it; before the first that succeeds, nothing is stale.
      if case .stale = state { return }
      if !hasBeenLive { return }
    }
    var new = new
    if case .closed(var goodbye) = new, let connectError {
      goodbye.message = connectError
      new = .closed(goodbye)
    }
    if case .live = new { hasBeenLive = true }
    state = new
    events.append(.state(new))
  }

  /// Release what belongs to the event that was taken last.
  func releaseEvent() {
    eventTexts.releaseAll()
    eventPlaces.removeAll(keepingCapacity: true)
  }

  // MARK: Requests

  func close() {
    values.invalidate()
    releaseEvent()
    perform { session, commands in session.close(into: &commands) }
    flush()
  }

  func subscribe(to path: Path, notesPlaces: Bool) -> UInt64 {
    var number: UInt64 = 0
    perform { session, commands in
      number = session.subscribe(
        to: path, as: Value.self, notesPatches: notesPlaces, into: &commands)
    }
    socket.watchForWriting()
    return number
  }

  func unsubscribe(_ subscription: UInt64) {
    values.invalidate()
    releaseEvent()
    values.remove(subscription)
    events.removeChanges(of: subscription)
    perform { session, commands in session.unsubscribe(subscription, into: &commands) }
    socket.watchForWriting()
  }

  func send(_ payload: [UInt8], _ mark: Mark) throws(Failure) -> UInt64 {
    if session.hasEnded { throw Failure(LOCKSTEP_ERROR_CLOSED) }
    let limit = session.welcome?.limits.first { $0.name == "frameBytes" }?.value
    let most = limit.map { Int(clamping: $0) } ?? Self.mostBytes
    // A frame has a few more bytes than its action.
    guard payload.count + 32 <= min(most, Int(Int32.max)) else {
      throw Failure(
        LOCKSTEP_ERROR_LIMIT, "the action has \(payload.count) bytes, and a frame at most \(most)")
    }
    var number: UInt64 = 0
    perform { session, commands in
      number = session.send(payload, mark, into: &commands).rawValue
    }
    socket.watchForWriting()
    return number
  }

  func query(_ name: String, _ arguments: [String]) throws(Failure) -> UInt64 {
    if session.hasEnded { throw Failure(LOCKSTEP_ERROR_CLOSED) }
    guard session.isLive else { throw Failure(LOCKSTEP_ERROR_NOT_CONNECTED) }
    lastQuery += 1
    perform { session, commands in
      session.query(lastQuery, name, arguments: arguments, into: &commands)
    }
    socket.watchForWriting()
    return lastQuery
  }
}
