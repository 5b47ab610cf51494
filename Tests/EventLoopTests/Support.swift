import EventLoop
import Glibc
import Synchronization
import Testing

/// Runs a loop on this thread. `setUp` makes its handles, and one of its callbacks stops the loop.
func withLoop(
  readBufferSize: Int = 65_536, _ setUp: (Loop) throws -> Void,
  sourceLocation: SourceLocation = #_sourceLocation
) throws {
  Signals.ignoreBrokenPipe()
  let loop = try Loop(readBufferSize: readBufferSize)
  let watchdog = Timer(on: loop) {
    Issue.record("nothing stopped the loop", sourceLocation: sourceLocation)
    loop.stop()
  }
  watchdog.start(after: .seconds(60))
  try setUp(loop)
  loop.run()
}

/// Calls `body` with the path of a socket in a new directory, and removes the directory.
func withSocketPath<Result>(_ body: (String) throws -> Result) throws -> Result {
  var template = Array("/tmp/lockstep-loop-XXXXXX".utf8CString)
  let directory = try #require(mkdtemp(&template).map { String(cString: $0) })
  defer {
    unlink(directory + "/socket")
    rmdir(directory)
  }
  return try body(directory + "/socket")
}

/// Two pipes on `loop` that are connected to each other.
func pair(on loop: Loop) throws -> (Pipe, Pipe) {
  var descriptors: [Int32] = [-1, -1]
  try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &descriptors) == 0)
  return (
    try Pipe.adopt(descriptor: descriptors[0], on: loop),
    try Pipe.adopt(descriptor: descriptors[1], on: loop)
  )
}

/// Runs `body` on a new thread.
func onThread(_ body: @escaping @Sendable () -> Void) {
  final class Start: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var thread = pthread_t()
  let status = pthread_create(
    &thread, nil,
    {
      Unmanaged<Start>.fromOpaque($0!).takeRetainedValue().body()
      return nil
    }, Unmanaged.passRetained(Start(body)).toOpaque())
  precondition(status == 0, "A test needs a thread.")
  pthread_detach(thread)
}

/// A value that threads share.
final class Shared<Value: Sendable>: Sendable {
  private let mutex: Mutex<Value>

  init(_ value: Value) {
    mutex = Mutex(value)
  }

  var value: Value { mutex.withLock { $0 } }

  func update(_ change: (inout Value) -> Void) {
    mutex.withLock { change(&$0) }
  }
}

/// Bytes in which every position is recognisable.
func pattern(_ count: Int, seed: Int = 0) -> [UInt8] {
  (0..<count).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 31 &+ ($0 >> 8)) }
}
