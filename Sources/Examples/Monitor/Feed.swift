import ArgumentParser
import Documents
import EventLoop
import Glibc
import LockstepClient
import Values

/// Sends the data of `/proc` at a fixed rate, as one action each time.
struct Feed: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Send what /proc says, ten times a second.")

  @OptionGroup var daemon: DaemonAddress

  @Option(help: "How many times a second.")
  var rate = 10

  @Option(help: "For how many seconds.")
  var seconds = 15

  func run() async throws {
    // The feeder shows nothing, so it mirrors only the counter of its own samples.
    let mirror = try await Subscription<Value>.connect(
      to: ["proc", "samples"], .init(socket: daemon.socket, label: daemon.label))
    try await mirror.send(DocumentAction.set(["proc"], [:]))
    let clock = LoopClock()
    var next = clock.now
    for sample in 1...max(1, rate * seconds) {
      try await mirror.send(Self.sample(number: sample))
      next += .seconds(1) / rate
      try await clock.sleep(until: next)
    }
    let result: Value = [
      "label": .text(daemon.label), "samples": .integer(Int64(rate * seconds)),
    ]
    print(JSON.text(result, sortedKeys: true))
    mirror.connection.close()
  }

  private static func sample(number: Int) -> DocumentAction {
    let parts: [(PathKey, Value)] = [
      ("cpu", ProcFiles.cpu()), ("memory", ProcFiles.memory()), ("disks", ProcFiles.disks()),
      ("network", ProcFiles.network()), ("processes", ProcFiles.largestProcesses(20)),
      ("samples", .integer(Int64(number))), ("sentAt", .integer(MonotonicClock.nanoseconds())),
    ]
    // Memory has a timestamp of its own, for clients that mirror nothing else.
    return .transaction(
      parts.map { .set(["proc", $0], $1) }
        + [.set(["proc", "memory", "sentAt"], .integer(MonotonicClock.nanoseconds()))])
  }
}

/// A clock that all processes of the machine share.
enum MonotonicClock {
  static func nanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
