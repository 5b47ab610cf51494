import DaemonCore
import Wire

/// A connection over the simulated network: two streams of bytes, and two ends that learn late that
/// the other has closed.
struct Link: Sendable {
  let id: ConnectionID

  /// Sent by the client, not yet read by the daemon.
  var toDaemon: [UInt8] = []
  /// In the socket's buffer, not yet read by the client.
  var toClient: [UInt8] = []
  /// Bytes that wait in the daemon because the buffer is full.
  var unsent: [UInt8] = []
  /// The capacity of the socket's buffer, in bytes.
  let capacity: Int

  /// The daemon has paused reading.
  var isPaused = false
  /// The daemon knows that some bytes are unsent.
  var isBlocked = false
  /// The daemon closes once everything is written.
  var isClosing = false
  /// The daemon has the connection.
  var daemonIsOpen = true
  /// The daemon's server knows that the connection has ended.
  var closedIsTold = false
  /// The client has the connection.
  var clientIsOpen = true
  /// The connection is cut, and neither end knows.
  var isCut = false
  /// The client reads nothing before this time.
  var stalledUntil = Instant(nanoseconds: 0)

  init(_ id: ConnectionID, capacity: Int) {
    self.id = id
    self.capacity = capacity
  }

  var isOver: Bool { !clientIsOpen && closedIsTold }

  /// The daemon writes.
  mutating func write(_ bytes: [UInt8]) {
    // Bytes written to a dead connection are lost.
    if isCut || !clientIsOpen { return }
    unsent.append(contentsOf: bytes)
    pump()
  }

  /// Move unsent bytes into the socket's buffer.
  mutating func pump() {
    let room = min(capacity - toClient.count, unsent.count)
    if room > 0 {
      toClient.append(contentsOf: unsent[..<room])
      unsent.removeFirst(room)
    }
    if isClosing && unsent.isEmpty { daemonIsOpen = false }
  }

  /// The daemon's end closes at once.
  mutating func abort() {
    unsent = []
    daemonIsOpen = false
  }

  /// The client's end closes; the bytes that it has written still arrive.
  mutating func leave() {
    clientIsOpen = false
    toClient = []
    unsent = []
    if isClosing { daemonIsOpen = false }
  }

  /// Take bytes that have arrived at one end.
  static func take(_ count: Int, from bytes: inout [UInt8]) -> [UInt8] {
    if count >= bytes.count {
      defer { bytes = [] }
      return bytes
    }
    let taken = Array(bytes[..<count])
    bytes.removeFirst(count)
    return taken
  }
}
