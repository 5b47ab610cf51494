import ArgumentParser
import EventLoop
import Glibc

/// A remote for the feed: sends each line of its standard input to every connection.
struct ServeRemote: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Be the remote: send what standard input says to everyone, line by line.")

  @Argument(help: "The path of the socket to serve at.")
  var path: String

  func run() async throws {
    Signals.ignoreBrokenPipe()
    let remote = RemoteServer(loop: try Loop.startThread(name: "remote"))
    try await remote.serve(at: path)
    say("serving at \(path)")
    while let line = readLine() { await remote.broadcast(line) }
  }
}

/// The connections of the remote, on its loop's thread.
private actor RemoteServer {
  private let loop: Loop
  private var listener: Listener?
  private var pipes: [ObjectIdentifier: Pipe] = [:]

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(loop: Loop) { self.loop = loop }

  /// Begin to serve. The socket file of a former remote is replaced.
  func serve(at path: String) throws {
    unlink(path)
    listener = try Listener.bind(path: path, mode: 0o600, on: loop) { self.accept($0) }
  }

  private func accept(_ pipe: Pipe) {
    let id = ObjectIdentifier(pipe)
    pipes[id] = pipe
    pipe.startReading(
      onBytes: { _ in },
      onEnd: { _ in
        self.pipes[id] = nil
        pipe.close()
      })
  }

  func broadcast(_ line: String) {
    for pipe in pipes.values { pipe.write(Array("\(line)\n".utf8)) }
  }
}
