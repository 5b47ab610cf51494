import CBOR
import CLockstep
import ClientCore
import JSONCoding
import Values
import Wire

// Actions and queries.

@c @implementation
public func lockstep_send(
  _ connection: OpaquePointer!, _ name: UnsafePointer<CChar>!,
  _ arguments: UnsafePointer<CChar>!, _ flags: UInt32, _ action: UnsafeMutablePointer<UInt64>!
) -> Int32 {
  with(connection) { connection throws(Failure) in
    let value = try arguments.map { pointer throws(Failure) in try parseJSON(pointer) }
    try connection.send(name, value, flags, action)
    return 0
  }
}

@c @implementation
public func lockstep_send_cbor(
  _ connection: OpaquePointer!, _ name: UnsafePointer<CChar>!,
  _ arguments: UnsafeRawPointer!, _ length: Int, _ flags: UInt32,
  _ action: UnsafeMutablePointer<UInt64>!
) -> Int32 {
  with(connection) { connection throws(Failure) in
    var value: Value?
    if arguments != nil { value = try parseCBOR(try bytes(arguments, length)) }
    try connection.send(name, value, flags, action)
    return 0
  }
}

@c @implementation
public func lockstep_send_encoded(
  _ connection: OpaquePointer!, _ payload: UnsafeRawPointer!, _ length: Int,
  _ flags: UInt32, _ action: UnsafeMutablePointer<UInt64>!
) -> Int32 {
  with(connection) { connection throws(Failure) in
    try connection.send([UInt8](try bytes(payload, length)), flags, action)
    return 0
  }
}

extension ClientConnection {
  /// Send an action by its name, with what it carries, or whole.
  fileprivate func send(
    _ name: UnsafePointer<CChar>?, _ arguments: Value?, _ flags: UInt32,
    _ number: UnsafeMutablePointer<UInt64>?
  ) throws(Failure) {
    let name = try name.map { pointer throws(Failure) in try String(c: pointer) }
    if session.hasEnded { throw Failure(LOCKSTEP_ERROR_CLOSED) }
    guard let schema = session.schema else { throw Failure(LOCKSTEP_ERROR_NOT_CONNECTED) }
    let payload: [UInt8]
    do throws(ActionJSONError) {
      let action: Value
      if let name {
        action = try ActionJSON.action(named: name, carrying: arguments, schema: schema)
      } else if let arguments {
        action = arguments
      } else {
        throw ActionJSONError("there is neither a name nor an action")
      }
      payload = try ActionJSON.payload(of: action, schema: schema)
    } catch {
      throw Failure(LOCKSTEP_ERROR_ACTION, error.description)
    }
    try send(payload, flags, number)
  }

  /// Send an encoded action.
  fileprivate func send(
    _ payload: [UInt8], _ flags: UInt32, _ number: UnsafeMutablePointer<UInt64>?
  ) throws(Failure) {
    guard flags & ~LOCKSTEP_DURABLE.rawValue == 0 else { throw Failure(LOCKSTEP_ERROR_ARGUMENT) }
    do throws(CBORError) {
      // The message around the action is a level, too.
      try CBORDecoder.read(payload, depth: CBORDecoder.defaultDepth - 1) {
        (decoder) throws(CBORError) in try decoder.skip()
      }
    } catch {
      guard case .nestingTooDeep = error.kind else {
        throw Failure(LOCKSTEP_ERROR_CBOR, "\(error)")
      }
      throw Failure(LOCKSTEP_ERROR_LIMIT, "\(error)")
    }
    let sent = try send(
      payload, flags & LOCKSTEP_DURABLE.rawValue == 0 ? .applied : .durable)
    number?.pointee = sent
  }
}

private func parseJSON(_ pointer: UnsafePointer<CChar>) throws(Failure) -> Value {
  let text = try String(c: pointer)
  do throws(JSONError) {
    return try JSON.parse(text)
  } catch {
    throw Failure(LOCKSTEP_ERROR_JSON, error.description)
  }
}

private func parseCBOR(_ bytes: UnsafeRawBufferPointer) throws(Failure) -> Value {
  do throws(CBORError) {
    return try CBORDecoder.read([UInt8](bytes)) { (decoder) throws(CBORError) in
      try Value(from: &decoder, seed: .unseeded)
    }
  } catch {
    throw Failure(LOCKSTEP_ERROR_CBOR, "\(error)")
  }
}

/// The bytes that a caller gave.
private func bytes(
  _ pointer: UnsafeRawPointer?, _ length: Int
) throws(Failure) -> UnsafeRawBufferPointer {
  guard pointer != nil, length >= 0 else { throw Failure(LOCKSTEP_ERROR_ARGUMENT) }
  return UnsafeRawBufferPointer(start: pointer, count: length)
}

// MARK: Queries

/// The most arguments of a query, which is that of the daemon; and the most bytes of all of them.
private let mostArguments = 16
private let mostQueryBytes = 1 << 20

@c @implementation
public func lockstep_query(
  _ connection: OpaquePointer!, _ name: UnsafePointer<CChar>!,
  _ arguments: UnsafePointer<UnsafePointer<CChar>?>!, _ count: Int,
  _ query: UnsafeMutablePointer<UInt64>!
) -> Int32 {
  with(connection) { connection throws(Failure) in
    guard count >= 0, arguments != nil || count == 0 else { throw Failure(LOCKSTEP_ERROR_ARGUMENT) }
    guard count <= mostArguments else { throw Failure(LOCKSTEP_ERROR_LIMIT) }
    let name = try String(c: name)
    var texts: [String] = []
    for index in 0..<count { texts.append(try String(c: arguments[index])) }
    guard texts.reduce(name.utf8.count, { $0 + $1.utf8.count }) <= mostQueryBytes else {
      throw Failure(LOCKSTEP_ERROR_LIMIT)
    }
    let number = try connection.query(name, texts)
    query?.pointee = number
    return 0
  }
}
