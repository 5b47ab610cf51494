import EventLoop
import FeedFeature

extension WebSocket {
  /// A Unix socket on which each line is a message.
  static func unixSocket(at path: String) -> WebSocket {
    WebSocket { try await Remote(loop: loop.get()).connect(to: path) }
  }

  /// The loop that reads from the remote, apart from the daemon's loop.
  private static let loop = Result { try Loop.startThread(name: "remote") }
}

/// A connection to the remote, which runs on its loop's thread.
private actor Remote {
  /// The longest accepted line, in bytes.
  private static let lineLimit = 1 << 20

  private let loop: Loop
  private var pipe: Pipe?
  /// The beginning of an incomplete line.
  private var rest: [UInt8] = []

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(loop: Loop) { self.loop = loop }

  func connect(to path: String) async throws -> Lines {
    try await withCheckedThrowingContinuation { continuation in
      Pipe.connect(path: path, on: loop) { result in
        continuation.resume(with: result.map { self.pipe = $0 })
      }
    }
    let (chunks, continuation) = AsyncThrowingStream<[String], any Error>.makeStream()
    continuation.onTermination = { _ in Task { await self.close() } }
    pipe?.startReading(
      onBytes: { bytes in self.receive(bytes, continuation) },
      onEnd: { error in continuation.finish(throwing: error) })
    return Lines(remote: self, chunks: chunks)
  }

  /// Deliver the complete lines, and pause reading until they are consumed.
  private func receive(
    _ bytes: UnsafeRawBufferPointer,
    _ continuation: AsyncThrowingStream<[String], any Error>.Continuation
  ) {
    rest += bytes
    if rest.count > Self.lineLimit { return continuation.finish(throwing: LineTooLong()) }
    var lines = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    rest = lines.popLast().map(Array.init) ?? []
    if lines.isEmpty { return }
    pipe?.stopReading()
    continuation.yield(lines.map { String(decoding: $0, as: UTF8.self) })
  }

  func readOn() { pipe?.resumeReading() }

  private func close() { pipe?.close() }
}

/// The lines of a remote.
private struct Lines: AsyncSequence, Sendable {
  let remote: Remote
  let chunks: AsyncThrowingStream<[String], any Error>

  func makeAsyncIterator() -> Iterator {
    Iterator(remote: remote, chunks: chunks.makeAsyncIterator())
  }

  struct Iterator: AsyncIteratorProtocol {
    let remote: Remote
    var chunks: AsyncThrowingStream<[String], any Error>.Iterator
    var lines: ArraySlice<String> = []

    mutating func next() async throws -> String? {
      while lines.isEmpty {
        await remote.readOn()
        guard let chunk = try await chunks.next() else { return nil }
        lines = chunk[...]
      }
      return lines.removeFirst()
    }
  }
}

private struct LineTooLong: Error, CustomStringConvertible {
  var description: String { "the remote sends a line that does not end" }
}
