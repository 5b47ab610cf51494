import DaemonCore
import Wire

/// A connection over the invented network: two streams of bytes, and two ends that learn about
/// each other's end late.
struct Link: Sendable {
  let id: ConnectionID

  /// Sent by the client, not yet read by the daemon.
  var toDaemon: [UInt8] = []
  /// In the socket's buffer, not yet read by the client.
  var toClient: [UInt8] = []
  /// Waits in the daemon because the buffer is full.
  var unsent: [UInt8] = []
  /// How many bytes the socket's buffer takes.
  let capacity: Int

  /// The daemon reads nothing for now.
  var isPaused = false
  /// The daemon knows that something is unsent.
  var isBlocked = false
  /// The daemon closes once everything is written.
  var isClosing = false
  /// The daemon has the connection.
  var daemonIsOpen = true
  /// The daemon's server knows that the connection has ended.
  var closedIsTold = false
  /// The client has the connection.
  var clientIsOpen = true
  /// Nothing passes any more, and neither end knows.
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
    // What is written to a dead connection is lost, as far as it fits the buffer.
    if isCut || !clientIsOpen { return }
    unsent.append(contentsOf: bytes)
    pump()
  }

  /// Move what waits into the socket's buffer.
  mutating func pump() {
    let room = min(capacity - toClient.count, unsent.count)
    if room > 0 {
      toClient.append(contentsOf: unsent[..<room])
      unsent.removeFirst(room)
    }
    if isClosing && unsent.isEmpty { daemonIsOpen = false }
  }

  /// The daemon's end goes away at once.
  mutating func abort() {
    unsent = []
    daemonIsOpen = false
  }

  /// The client's end goes away: what it has written still arrives.
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
