import CLockstep

/// An error of this interface, and what there is to say beyond it.
struct Failure: Error {
  let code: Int32
  let message: String

  init(_ code: lockstep_error, _ message: String = "") {
    self.code = code.rawValue
    self.message = message
  }
}

@c @implementation
public func lockstep_abi_version() -> Int32 { LOCKSTEP_ABI_VERSION }

@c @implementation
public func lockstep_error_text(_ error: Int32) -> UnsafePointer<CChar>! {
  let text: StaticString =
    switch error {
    case 0...: "no error"
    case LOCKSTEP_ERROR_ARGUMENT.rawValue: "an argument is NULL, or a flag unknown"
    case LOCKSTEP_ERROR_HANDLE.rawValue: "the connection was freed"
    case LOCKSTEP_ERROR_STALE.rawValue: "the value is older than the last dispatch"
    case LOCKSTEP_ERROR_UTF8.rawValue: "the text is not UTF-8"
    case LOCKSTEP_ERROR_PATH.rawValue:
      "not a JSON Pointer: it is empty or begins with '/', and writes '~' as ~0"
    case LOCKSTEP_ERROR_ABSENT.rawValue: "there is no value at this place"
    case LOCKSTEP_ERROR_KIND.rawValue: "the value is of another kind"
    case LOCKSTEP_ERROR_RANGE.rawValue: "the number does not fit the type that was asked for"
    case LOCKSTEP_ERROR_JSON.rawValue: "the text is not JSON"
    case LOCKSTEP_ERROR_CBOR.rawValue: "the bytes are not one well-formed item of CBOR"
    case LOCKSTEP_ERROR_ACTION.rawValue: "that is no action of the daemon"
    case LOCKSTEP_ERROR_NOT_CONNECTED.rawValue: "there is no daemon that has answered"
    case LOCKSTEP_ERROR_CLOSED.rawValue: "the connection is closed"
    case LOCKSTEP_ERROR_SUBSCRIPTION.rawValue: "there is no subscription of this number"
    case LOCKSTEP_ERROR_DUPLICATE.rawValue: "there is a subscription to this path already"
    case LOCKSTEP_ERROR_SOCKET_PATH.rawValue:
      "the path of the socket is empty, or longer than the system allows"
    case LOCKSTEP_ERROR_SYSTEM.rawValue: "a call of the system failed"
    case LOCKSTEP_ERROR_LIMIT.rawValue: "a limit of the library was reached"
    default: "an unknown error"
    }
  return UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}
