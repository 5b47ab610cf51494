import ArgumentParser
import ClientCore
import Documents
import EventLoop
import Glibc
import LockstepClient
import Values
import Wire

/// Mirrors a part of the document until it is stopped, then prints a report.
struct Follow: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Mirror a part of the document; at SIGTERM, compare with the daemon and report.",
    discussion: """
      The report is a JSON object. The exit status is 0 only if the mirror equals the daemon's \
      state.
      """)

  @OptionGroup var daemon: DaemonAddress

  @Option(help: "What to mirror, as a JSON Pointer.")
  var scope = ""

  @Flag(help: "Show /proc as a live table.")
  var table = false

  @Option(help: "The file to write the report to; standard output if none.")
  var report: String?

  func run() async throws {
    guard let path = Path(pointer: scope) else {
      throw ValidationError("--scope \(scope) is not a JSON Pointer")
    }
    let stop = try Termination()
    let mirror = try await Subscription<Value>.connect(
      to: path, .init(socket: daemon.socket, label: daemon.label))
    let latencies = Task { await measure(mirror, path) }
    await stop.wait()
    let isEqual = try await compare(mirror, path, latencies)
    mirror.connection.close()
    if !isEqual { throw ExitCode(1) }
  }

  /// Follow the mirror to the end of its changes, and record the age of each sample on arrival.
  private func measure(_ mirror: Subscription<Value>, _ path: Path) async -> [Int64] {
    var latencies: [Int64] = []
    var screen = Table()
    for await state in mirror.changes {
      guard let proc = path.keys.isEmpty ? state?.value(at: ["proc"]) : state else { continue }
      if case .integer(let sentAt)? = proc.value(at: ["sentAt"]) {
        latencies.append(MonotonicClock.nanoseconds() - sentAt)
      }
      if table { screen.show(proc, mirror.position, latencies.last ?? 0) }
      if Task.isCancelled { break }
    }
    return latencies
  }

  private func compare(
    _ mirror: Subscription<Value>, _ path: Path, _ latencies: Task<[Int64], Never>
  ) async throws -> Bool {
    // The answer arrives in the stream at the revision of the digest, so the mirror is at that
    // revision.
    let theirs = try await mirror.daemonDigest()
    let digest = mirror.digest
    let coalesced = try await coalescedRevisions(mirror)
    let counters = mirror.counters
    let position = mirror.position
    latencies.cancel()
    mirror.connection.close()
    let sorted = await latencies.value.sorted()
    func percentile(_ share: Double) -> Value {
      guard !sorted.isEmpty else { return .null }
      return .integer(sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))] / 1000)
    }
    let isEqual = digest == theirs.digest && mirror.connection.divergences == 0
    try write([
      "label": .text(daemon.label), "scope": .text(path.pointer),
      "revision": Value(position?.revision ?? 0),
      "digest": .text(digest?.description ?? ""), "snapshots": Value(counters.snapshots),
      "patches": Value(counters.patches), "coalesced": coalesced,
      "bytes": Value(counters.bytes), "p50": percentile(0.5), "p99": percentile(0.99),
      "equal": .bool(isEqual),
    ])
    return isEqual
  }

  private func write(_ report: Value) throws {
    var bytes: [UInt8] = []
    JSON.write(report, into: &bytes)
    guard let path = self.report else { return print(String(decoding: bytes, as: UTF8.self)) }
    bytes.append(UInt8(ascii: "\n"))
    guard let file = fopen(path, "we") else { throw ValidationError("cannot write \(path)") }
    defer { fclose(file) }
    fwrite(bytes, 1, bytes.count, file)
  }

  /// The number of revisions that the daemon coalesced for this process, as it reports.
  private func coalescedRevisions(_ mirror: Subscription<Value>) async throws -> Value {
    guard case .array(let clients) = try await mirror.connection.report("clients") else {
      return .null
    }
    let own = clients.first { $0.value(at: ["pid"]) == .integer(Int64(getpid())) }
    return own?.value(at: ["coalesced"]) ?? .null
  }
}

/// Waits for SIGTERM or SIGINT.
struct Termination {
  private let signals: AsyncStream<Int32>

  /// From here on the signals do not end the process.
  init() throws {
    let loop = try Loop.startThread(name: "signals")
    let (signals, continuation) = AsyncStream<Int32>.makeStream()
    self.signals = signals
    loop.execute {
      // The watcher lives until its loop ends, and the loop as long as the process.
      _ = try? SignalWatcher([SIGTERM, SIGINT], on: loop) { continuation.yield($0) }
    }
  }

  /// Return when one of the signals has arrived.
  func wait() async {
    for await _ in signals { return }
  }
}
