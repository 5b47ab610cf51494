import EventLoop

/// The loop on which every client of the process lives, on a thread of its own.
enum ClientLoop {
  static let shared: Result<Loop, LoopError> = Result { () throws(LoopError) in
    Signals.ignoreBrokenPipe()
    return try Loop.startThread(name: "lockstep-client")
  }
}
