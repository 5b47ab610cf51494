/// The reason that a notification failed.
public enum NotifyError: Error, Equatable, CustomStringConvertible {
  /// `$NOTIFY_SOCKET` names no socket.
  case environment(EnvironmentError)
  /// The system did not accept the datagram. `EAGAIN`: the manager did not read in time.
  case system(SystemError)
  /// The datagram has this many bytes, and the manager accepts `NotifySocket.messageLimit` at most.
  case tooLong(bytes: Int)
  /// There are this many descriptors, and a datagram has `NotifySocket.descriptorLimit` at most.
  case tooManyDescriptors(count: Int)
  /// A name of descriptors that is not ASCII, has a colon or control character, or is longer than
  /// 255 bytes. The manager would keep the descriptors under another name.
  case invalidName(String)
  /// An assignment that is not one line `VARIABLE=VALUE`.
  case invalidAssignment(String)
  /// Two notifications about named descriptors in one datagram, which has room for one name; or
  /// descriptors without a notification that says what they are for, or the other way around.
  case mismatchedDescriptors
  /// The manager did not read the datagrams before a barrier in time.
  case barrierTimedOut

  public var description: String {
    switch self {
    case .environment(let error): "cannot notify the service manager: \(error)"
    case .system(let error): "cannot notify the service manager: \(error)"
    case .tooLong(let bytes):
      "a notification has \(bytes) bytes, and at most \(NotifySocket.messageLimit) are taken"
    case .tooManyDescriptors(let count):
      "a notification has \(count) descriptors, and at most \(NotifySocket.descriptorLimit) "
        + "are taken"
    case .invalidName(let name): "no name for a descriptor: \"\(name)\""
    case .invalidAssignment(let text): "no assignment: \"\(text)\""
    case .mismatchedDescriptors: "a notification's descriptors do not fit what it says"
    case .barrierTimedOut: "the service manager did not read its notifications in time"
    }
  }
}
