import CBOR
import Lockstep
import Synchronization
import Values

/// A feature as a user would write it: a shopping list with amounts, and a backend with
/// suggestions.
struct Groceries: Reducer {
  @Dependency(\.backend) var backend

  func reduce(
    into state: inout SyncMap<String, Int>, action: GroceryAction
  ) throws(Rejection) -> Effect<GroceryAction> {
    switch action {
    case .add(let name, let count):
      if name.isEmpty { throw Rejection(.refused, "no name") }
      state[name] = count
      return .none
    case .clear:
      state.removeAll()
      return .none
    case .load: return load.accepted
    case .loadBeside: return load
    case .loaded(let names):
      for name in names { state[name] = 1 }
      return .none
    case .tick: return .timer(every: .seconds(1)) { .ticked }.cancellable(id: "ticks")
    case .ticked:
      state["ticks"] = (state["ticks"] ?? 0) + 1
      return .none
    case .spin: return .run(name: "spin") { _ in while !Task.isCancelled { await Task.yield() } }
    }
  }

  private var load: Effect<GroceryAction> {
    .run(name: "load") { [backend] send in
      try await backend.fetch { await send(.loaded($0)) }
    }
  }
}

enum GroceryAction: Equatable, SynchronizableAction, SynchronizableScalar {
  case add(String, Int)
  case clear, load, loadBeside, tick, ticked, spin
  case loaded([String])

  var name: String {
    switch self {
    case .add: "add"
    case .clear: "clear"
    case .load: "load"
    case .loadBeside: "loadBeside"
    case .tick: "tick"
    case .ticked: "ticked"
    case .spin: "spin"
    case .loaded: "loaded"
    }
  }

  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }

  func encode(into encoder: inout CBOREncoder) {
    encoder.array(3)
    encoder.encode(name)
    switch self {
    case .add(let name, let count):
      encoder.encode(name)
      encoder.encode(count)
    case .loaded(let names):
      encoder.encode(names.joined(separator: ","))
      encoder.encode(names.count)
    case .clear, .load, .loadBeside, .tick, .ticked, .spin:
      encoder.encode("")
      encoder.encode(0)
    }
  }

  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    _ = try decoder.array()
    let (kind, text, number) = (
      try decoder.text(), try decoder.text(), Int(try decoder.integer())
    )
    decoder.close()
    switch kind {
    case "add": self = .add(text, number)
    case "clear": self = .clear
    case "load": self = .load
    case "loadBeside": self = .loadBeside
    case "tick": self = .tick
    case "spin": self = .spin
    default: throw CBORError(.unknownCase(0), at: 0)
    }
  }
}

/// Swallows sugar.
struct NoSweets: Middleware {
  func before(
    _ action: inout GroceryAction, state: SyncMap<String, Int>,
    context: inout MiddlewareContext<GroceryAction>
  ) throws(Rejection) -> MiddlewareVerdict {
    if case .add("sugar", _) = action { .swallow } else { .proceed }
  }

  func after(
    _ action: GroceryAction, state: SyncMap<String, Int>, reduction: Reduction,
    context: MiddlewareContext<GroceryAction>
  ) -> Effect<GroceryAction> { .none }
}

// MARK: Backends

protocol Backend: Sendable {
  func fetch(_ found: @escaping @Sendable ([String]) async -> Void) async throws
}

private enum BackendKey: DependencyKey {
  static var liveValue: any Backend { FakeBackend() }
}

extension DependencyValues {
  var backend: any Backend {
    get { self[BackendKey.self] }
    set { self[BackendKey.self] = newValue }
  }
}

/// Works concurrently, and finishes after a delay.
actor FakeBackend: Backend {
  private var requests = 0

  func fetch(_ found: @escaping @Sendable ([String]) async -> Void) async throws {
    requests += 1
    async let first = page(["milk", "bread"], after: .milliseconds(700))
    async let second = page(["eggs"], after: .milliseconds(1200))
    await found(try await first)
    await found(try await second)
  }

  private func page(_ names: [String], after pause: Duration) async throws -> [String] {
    try await DependencyValues.current.clock.pause(for: pause)
    return names
  }
}

/// Delivers the pages that a test feeds it.
final class FedBackend: Backend {
  private let pages: AsyncStream<[String]>
  private let continuation: AsyncStream<[String]>.Continuation

  init() { (pages, continuation) = AsyncStream.makeStream() }

  func feed(_ names: [String]) { continuation.yield(names) }

  func fetch(_ found: @escaping @Sendable ([String]) async -> Void) async throws {
    for await page in pages { await found(page) }
  }
}

/// A way to do work whose timing no seed decides.
enum Escape: CaseIterable, Sendable {
  case detached, detachedSend, unstructured, continuousClock, sleep
}

struct EscapingBackend: Backend {
  let escape: Escape

  func fetch(_ found: @escaping @Sendable ([String]) async -> Void) async throws {
    switch escape {
    case .detached: await found(await Task.detached { ["milk"] }.value)
    case .detachedSend: await Task.detached { await found(["milk"]) }.value
    case .unstructured: await found(await Task { ["milk"] }.value)
    case .continuousClock: try await ContinuousClock().sleep(for: .milliseconds(50))
    case .sleep: try await Task.sleep(for: .milliseconds(50))
    }
  }
}
