import EventLoop

/// The loop that runs every client of the process, on a thread of its own.
enum ClientLoop {
  static let shared: Result<Loop, LoopError> = Result { () throws(LoopError) in
    Signals.ignoreBrokenPipe()
    return try Loop.startThread(name: "lockstep-client")
  }
}
