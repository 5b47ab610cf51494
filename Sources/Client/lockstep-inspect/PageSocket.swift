import CommandLineTool
import FlyingFox
import Foundation
import Synchronization

/// The connection of one page: a WebSocket, whose messages are those of an `InspectorSession`.
///
/// FlyingFox's own handler of messages would keep all that a page does not read; this one makes a frame
/// when the last has been written.
struct PageSocket: WSHandler {
  private let options: InspectorOptions

  /// The most bytes of a message of the page.
  private static let mostBytes = 1 << 20

  init(_ options: InspectorOptions) { self.options = options }

  func response(to request: HTTPRequest) async throws -> HTTPResponse {
    try await WebSocketHTTPHandler(handler: self).handleRequest(request)
  }

  func makeFrames(
    for client: AsyncThrowingStream<WSFrame, any Error>
  ) async throws -> AsyncStream<WSFrame> {
    let session = InspectorSession(options)
    let pongs = Pongs()
    Task { await session.run() }
    Task {
      try? await Self.read(client, session, pongs)
      session.end()
    }
    return AsyncStream {
      if let pong = pongs.take() { return pong }
      if let text = await session.next() {
        return WSFrame(fin: true, opcode: .text, mask: nil, payload: Data(text.utf8))
      }
      return pongs.takeClose()
    } onCancel: {
      session.end()
    }
  }

  /// Give the messages of the page to the session, until it closes the connection.
  private static func read(
    _ frames: AsyncThrowingStream<WSFrame, any Error>, _ session: InspectorSession, _ pongs: Pongs
  ) async throws {
    var message = Data()
    for try await frame in frames {
      switch frame.opcode {
      case .text, .continuation:
        message = frame.opcode == .text ? frame.payload : message + frame.payload
        if message.count > mostBytes { return }
        if frame.fin { session.receive(String(decoding: message, as: UTF8.self)) }
      case .ping: pongs.add(frame.payload)
      case .close: return
      default: break
      }
    }
  }
}

/// What the protocol itself has to answer.
private final class Pongs: Sendable {
  private let state = Mutex<(pongs: [Data], isClosed: Bool)>(([], false))

  /// Answer a ping, with the next message. Of many, the newest is enough (RFC 6455, 5.5.3).
  func add(_ payload: Data) { state.withLock { $0.pongs = [payload] } }

  func take() -> WSFrame? {
    state.withLock { $0.pongs.popLast() }
      .map { WSFrame(fin: true, opcode: .pong, mask: nil, payload: $0) }
  }

  /// The last frame; nil behind it.
  func takeClose() -> WSFrame? {
    state.withLock { state in
      defer { state.isClosed = true }
      return state.isClosed ? nil : .close()
    }
  }
}
