import CBOR
import Documents
import EventLoop
import Foundation
import Lockstep
import LockstepClient
import LockstepServer
import Logging
import Values

/// Measures what a client pays to show an action before the daemon has decided it.
///
///     Scripts/build OptimismBenchmark, and run it
///
/// A *keystroke* is one action that is sent and then seen, after a pause: no answer of the daemon is
/// waited for. The *next one* follows at once, so that nothing is to be woken, and code and data are in
/// the processor's caches. A *replay* decodes 100 waiting actions and reduces them again on a new confirmed
/// state, as a mirror does that keeps them encoded.
@main
struct OptimismBenchmark {
  static func main() async throws {
    print(
      "entries\tkeystroke p50, µs\tp99\tof it the post\tthe next one\treplay of 100, µs\tthe same, each"
    )
    for entries in [10, 1_000, 1_000_000] { try await measure(entries: entries) }
  }

  private static func measure(entries: Int) async throws {
    let seed = HashSeed(7)
    let document = Document(
      ["n": 0, "map": .object(TrieMap(uniqueKeysWithValues: (0..<entries).map { ("\($0)", 0) }))],
      seed: seed)
    let times = try await keystrokes(document, rounds: 2_000)
    let (keystrokes, posts, nexts) = (
      times.whole.sorted(), times.posts.sorted(), times.nexts.sorted()
    )
    var replays = (0..<101).map { _ in replay(on: document, entries: entries, seed: seed) }
    replays.sort()
    let columns = [
      keystrokes[keystrokes.count / 2], keystrokes[keystrokes.count * 99 / 100],
      posts[posts.count / 2], nexts[nexts.count / 2],
      replays[replays.count / 2], replays[replays.count / 2] / 100,
    ]
    let texts = columns.map { String(format: "%.2f", $0) }
    print((["\(entries)"] + texts).joined(separator: "\t"))
  }

  /// The microseconds of keystrokes, of posting their actions, and of the next ones.
  private static func keystrokes(
    _ document: Document, rounds: Int
  ) async throws -> (whole: [Double], posts: [Double], nexts: [Double]) {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    let socket = folder.appendingPathComponent("socket").path
    let loop = try Loop.startThread(name: "daemon")
    try await serve(document, at: socket, on: loop)
    let mirror = try await MirrorStore<DocumentFeature>.connect(
      optimistic: DocumentFeature(), Connection.Options(socket: socket, label: "benchmark"))
    var (times, posts, nexts): ([Double], [Double], [Double]) = ([], [], [])
    for round in 0..<rounds {
      let first = try keystroke(in: mirror, giving: 2 * round + 1)
      times.append(first.whole)
      posts.append(first.post)
      nexts.append(try keystroke(in: mirror, giving: 2 * round + 2).whole)
      // Until nothing waits, so that each keystroke is the first.
      try await mirror.send(.test(["n"], .integer(Int64(2 * round + 2))))
    }
    await mirror.connection.finish()
    loop.stop()
    return (times, posts, nexts)
  }

  /// The microseconds from before an action is posted until its change has been read, and those of
  /// posting.
  private static func keystroke(
    in mirror: MirrorStore<DocumentFeature>, giving number: Int
  ) throws -> (whole: Double, post: Double) {
    let start = DispatchTime.now().uptimeNanoseconds
    mirror.post(.increment(["n"], by: 1), .optimistic)
    let post = Double(DispatchTime.now().uptimeNanoseconds - start) / 1000
    let shown = mirror.state.root.value(at: ["n"])
    let whole = Double(DispatchTime.now().uptimeNanoseconds - start) / 1000
    guard shown == .integer(Int64(number)) else { throw Wrong(number: number, shown: shown) }
    return (whole, post)
  }

  private static func serve(_ document: Document, at socket: String, on loop: Loop) async throws {
    try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
      loop.execute {
        done.resume(
          with: Result {
            var logger = Logger(label: "benchmark")
            logger.logLevel = .critical
            let daemon = Daemon(initialState: document, logger: logger, on: loop) {
              DocumentFeature()
            }
            try daemon.serve(at: socket, mode: 0o600)
            // It lives as long as the process.
            _ = Unmanaged.passRetained(daemon)
          })
      }
    }
  }

  /// The microseconds that 100 encoded actions take on a copy of a state.
  private static func replay(on document: Document, entries: Int, seed: HashSeed) -> Double {
    let prediction = Prediction(of: DocumentFeature(), dependencies: DependencyValues())
    var random = SplitMix64(1)
    let payloads = (0..<100).map { _ in
      let key = PathKey.text("\(Int.random(in: 0..<entries, using: &random))")
      var encoder = CBOREncoder()
      DocumentAction.increment(["map", key], by: 1).encode(into: &encoder)
      return encoder.bytes
    }
    let start = DispatchTime.now().uptimeNanoseconds
    var state = document
    for (number, payload) in payloads.enumerated() {
      guard let action = decode(payload, seed) else { preconditionFailure("It was encoded here.") }
      prediction.reduce(
        action, into: &state, from: .owner, number: UInt64(number), seed: seed)
    }
    return Double(DispatchTime.now().uptimeNanoseconds - start) / 1000
  }

  private static func decode(_ payload: [UInt8], _ seed: HashSeed) -> DocumentAction? {
    payload.withUnsafeBytes { bytes in
      var decoder = CBORDecoder(bytes)
      return try? DocumentAction(from: &decoder, seed: seed)
    }
  }

  private struct Wrong: Error {
    let number: Int
    let shown: Value?
  }
}
