public import CLockstep
import ClientCore
import Glibc
import Schemas
import SocketPaths
import Wire

// Connections, their state, and their place in a caller's loop.

private let connectFlags =
  LOCKSTEP_WAIT_FOR_DAEMON.rawValue | LOCKSTEP_NO_RECONNECT.rawValue | LOCKSTEP_NO_DIGESTS.rawValue

/// The most bytes of a label: it is for reports, which cut it.
private let mostLabelBytes = 1024

@c @implementation
public func lockstep_connect(
  _ options: UnsafePointer<lockstep_options>!, _ connection: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  guard let connection else { return LOCKSTEP_ERROR_ARGUMENT.rawValue }
  connection.pointee = nil
  do throws(Failure) {
    let object = try makeConnection(options?.pointee ?? lockstep_options())
    let handle = Handle.make(object)
    object.values.begin(handle)
    do throws(Failure) {
      try object.start()
    } catch {
      let code = errno
      Handle.release(handle)
      errno = code
      throw error
    }
    connection.pointee = OpaquePointer(handle)
    return 0
  } catch {
    return error.code
  }
}

private func makeConnection(_ options: lockstep_options) throws(Failure) -> ClientConnection {
  guard options.flags & ~connectFlags == 0 else { throw Failure(LOCKSTEP_ERROR_ARGUMENT) }
  let path = try options.socket.map { pointer throws(Failure) in try String(c: pointer) }
  do throws(SocketPath.Unfit) {
    try SocketPath.check(path ?? SocketPath.standard)
  } catch {
    throw Failure(LOCKSTEP_ERROR_SOCKET_PATH)
  }
  let label = try options.label.map { pointer throws(Failure) in try String(c: pointer) }
  guard (label?.utf8.count ?? 0) <= mostLabelBytes else { throw Failure(LOCKSTEP_ERROR_LIMIT) }
  var configuration = ClientSession.Configuration(
    label: label ?? CommandLine.arguments.first ?? "")
  configuration.reconnects = options.flags & LOCKSTEP_NO_RECONNECT.rawValue == 0
  if options.flags & LOCKSTEP_NO_DIGESTS.rawValue != 0 { configuration.digestInterval = nil }
  // For programs without the daemon's types: its state is shown by names.
  configuration.schemaUse = .names
  return try ClientConnection(
    path: path, configuration: configuration,
    waitsForDaemon: options.flags & LOCKSTEP_WAIT_FOR_DAEMON.rawValue != 0)
}

@c @implementation
public func lockstep_close(_ connection: OpaquePointer!) -> Int32 {
  with(connection) { connection in
    connection.close()
    return 0
  }
}

@c @implementation
public func lockstep_free(_ connection: OpaquePointer!) {
  guard let handle = try? Handle.resolve(connection) else { return }
  handle.pointee.connection.close()
  Handle.release(handle)
}

@c @implementation
public func lockstep_state(_ connection: OpaquePointer!) -> Int32 {
  with(connection) { Int32(bitPattern: $0.state.number.rawValue) }
}

extension ClientSession.ConnectionState {
  var number: lockstep_state {
    switch self {
    case .connecting: LOCKSTEP_STATE_CONNECTING
    case .live: LOCKSTEP_STATE_LIVE
    case .stale: LOCKSTEP_STATE_STALE
    case .closed: LOCKSTEP_STATE_CLOSED
    }
  }

  /// The daemon's reason, if it gave one.
  var goodbye: Goodbye? {
    switch self {
    case .connecting, .live: nil
    case .stale(_, let goodbye): goodbye
    case .closed(let goodbye): goodbye
    }
  }
}

@c @implementation
public func lockstep_get_info(
  _ connection: OpaquePointer!, _ info: UnsafeMutablePointer<lockstep_info>!
) -> Int32 {
  with(connection) { connection throws(Failure) in
    guard let info else { throw Failure(LOCKSTEP_ERROR_ARGUMENT) }
    var facts = lockstep_info()
    facts.unacknowledged = UInt64(connection.session.unacknowledged)
    if let welcome = connection.session.welcome {
      facts.protocol_version = UInt32(clamping: welcome.version)
      facts.is_durable = welcome.durable == nil ? 0 : 1
      facts.durable = welcome.durable ?? 0
      (facts.epoch, facts.run) = (welcome.position.epoch, welcome.position.run)
      facts.revision = welcome.position.revision
      facts.session = welcome.session ?? 0
      facts.window = welcome.window
      (facts.pid, facts.uid, facts.gid) = (welcome.peer.pid, welcome.peer.uid, welcome.peer.gid)
    }
    info.pointee = facts
    return 0
  }
}

@c @implementation
public func lockstep_last_message(_ connection: OpaquePointer!) -> UnsafePointer<CChar>! {
  (try? Handle.resolve(connection))?.pointee.connection.message ?? emptyText
}

// MARK: In a loop

@c @implementation
public func lockstep_fd(_ connection: OpaquePointer!) -> Int32 {
  with(connection) { $0.descriptor }
}

@c @implementation
public func lockstep_events(_ connection: OpaquePointer!) -> Int32 {
  with(connection) { _ in POLLIN }
}

@c @implementation
public func lockstep_timeout(_ connection: OpaquePointer!) -> Int32 {
  // Not an error: -1 means never, so a connection that is not there is due at once, and dispatching it
  // says what is wrong.
  guard let handle = try? Handle.resolve(connection) else { return 0 }
  return handle.pointee.connection.timeout
}

@c @implementation
public func lockstep_dispatch(_ connection: OpaquePointer!) -> Int32 {
  with(connection) { connection throws(Failure) in
    try connection.dispatch()
    return 0
  }
}

@c @implementation
public func lockstep_wait(_ connection: OpaquePointer!, _ timeout: Int32) -> Int32 {
  with(connection) { connection throws(Failure) in
    try connection.wait(milliseconds: timeout) ? 1 : 0
  }
}

@c @implementation
public func lockstep_flush(_ connection: OpaquePointer!) -> Int32 {
  with(connection) { $0.flush() ? 1 : 0 }
}
