import Documents
import EventLoop
import Glibc
import Values
import Wire

/// Sends a document that is larger than a message: builds it beside the old one, then replaces the
/// old one in one step.
struct StagedLoad {
  let client: Client
  /// The path at which the new document is built.
  let staging: Path

  init(client: Client) {
    self.client = client
    staging = [.text("lockstep-load-\(getpid())-\(UInt32.random(in: 0 ... .max))")]
  }

  /// The last acknowledgement is as durable as `mark` asks, and so is everything before it.
  func run(
    _ document: Value, _ mark: Mark, showing progress: ProgressBar
  ) async throws -> Acknowledgement {
    let parts = try Parts(of: document, at: staging, limit: min(1 << 20, client.frameLimit / 4))
    progress.begin("sending", of: UInt64(parts.batches.reduce(0) { $0 + $1.bytes }))
    Interruption.watch()
    do {
      var sent = 0
      for batch in parts.batches {
        try Interruption.check()
        _ = try await client.send(.transaction(batch.actions))
        sent += batch.bytes
        progress.advance(to: UInt64(sent))
      }
      progress.begin("putting it in place")
      return try await client.send(.move(from: staging, to: .root), mark)
    } catch {
      _ = try? await client.send(.remove(staging))
      throw error
    }
  }

  /// The actions that build a value, in transactions small enough for a message.
  struct Parts {
    struct Batch: Sendable {
      var actions: [DocumentAction] = []
      var bytes = 0
    }

    private(set) var batches: [Batch] = []
    private var current = Batch()
    /// The most bytes of one action's value.
    private let limit: Int
    /// The most actions of one transaction; the daemon has such a limit too.
    private static let mostActions = 10_000

    init(of value: Value, at path: Path, limit: Int) throws(Failure) {
      self.limit = limit
      try add(value, at: path, isElement: false)
      flush()
    }

    private mutating func add(
      _ value: Value, at path: Path, isElement: Bool
    ) throws(Failure) {
      let size = EncodedSize.of(value)
      if size <= limit { return put(value, size, at: path, isElement: isElement) }
      switch value {
      case .object(let entries):
        put(.object(TrieMap()), 1, at: path, isElement: isElement)
        for (key, value) in entries {
          try add(value, at: Path(path.keys + [.text(key)]), isElement: false)
        }
      case .array(let elements):
        put(.array(TreeArray()), 1, at: path, isElement: isElement)
        for (index, element) in elements.enumerated() {
          try add(element, at: Path(path.keys + [.integer(Int64(index))]), isElement: true)
        }
      case .null, .bool, .integer, .unsigned, .double, .text, .bytes:
        throw Failure(
          .refused, code: "limit",
          "one \(value.kind) has \(size) bytes, more than can be sent. "
            + "'lockstepd --limit frameBytes=…' allows more, or start it with --load.")
      }
    }

    private mutating func put(_ value: Value, _ size: Int, at path: Path, isElement: Bool) {
      let size = size + path.keys.reduce(16) { $0 + $1.description.utf8.count + 3 }
      if current.bytes + size > limit || current.actions.count >= Self.mostActions { flush() }
      // Elements come in order, so each is appended to its array.
      let action: DocumentAction =
        isElement ? .append(Path(Array(path.keys.dropLast())), value) : .set(path, value)
      current.actions.append(action)
      current.bytes += size
    }

    private mutating func flush() {
      if !current.actions.isEmpty { batches.append(current) }
      current = Batch()
    }
  }
}
