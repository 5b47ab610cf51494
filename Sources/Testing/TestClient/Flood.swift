import CBOR
import Documents
import Glibc
import Values
import Wire

/// Connections that send increments of `/floodUID` as fast as the daemon reads them, as many at a
/// time as the window admits, and discard the answers. Tests use it to show that others are served
/// meanwhile.
package struct Flood {
  private let clients: [RawClient]
  private let bytes: [UInt8]
  /// `actions` is the number for each connection.
  init(socket: String, connections: Int, actions: UInt64) throws {
    clients = try (0..<connections).map { _ in
      let client = try RawClient(path: socket)
      try client.greet(label: "flood")
      return client
    }
    var payload = CBOREncoder()
    DocumentAction.increment([.text("flood\(getuid())")], by: 1).encode(into: &payload)
    bytes = (1...max(1, actions)).flatMap { number in
      Frame.encode {
        ClientMessage.action(number: number, .applied, payload: payload.bytes).encode(into: &$0)
      }
    }
  }

  /// Continue until everything is sent or the process is ended.
  func run(_ say: (String) -> Void) throws {
    say("connected")
    var sent = [Int](repeating: 0, count: clients.count)
    var rest = clients.count
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    while rest > 0 {
      var polled = clients.indices.map { index in
        pollfd(
          fd: clients[index].descriptor,
          events: Int16(POLLIN | (sent[index] < bytes.count ? POLLOUT : 0)), revents: 0)
      }
      guard poll(&polled, nfds_t(polled.count), -1) >= 0 || errno == EINTR else { return }
      for index in clients.indices where polled[index].revents != 0 {
        if polled[index].revents & Int16(POLLIN) != 0 {
          _ = recv(clients[index].descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        }
        guard sent[index] < bytes.count, polled[index].revents & Int16(POLLOUT) != 0 else {
          continue
        }
        let count = clients[index].sendSome(bytes[sent[index]...])
        guard count >= 0 else { throw RawClient.Failure(description: "a connection has ended") }
        sent[index] += count
        if sent[index] == bytes.count { rest -= 1 }
      }
    }
    say("sent")
    _ = read(STDIN_FILENO, &buffer, 1)
  }
}
