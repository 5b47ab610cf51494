public import CBOR
public import Lockstep
public import Values

/// The actions on the counters, and the work that they start.
public enum Errand: UInt64, Sendable, CaseIterable {
  /// Changes without work.
  case set, add, remove
  /// Changes much and then fails: none of it may be visible.
  case fail
  /// Work that adds to a counter as it continues.
  case run, send, merge, concatenate, accept, named, debounce, throttle, timer, owned, inner
  case cancel, cancelInner
  /// Sends itself `number` times, without a pause.
  case flood
  /// Work that fails, with and without an error handler.
  case failingWork
  /// Actions that the middleware handles.
  case swallowed, doubled, refused, changed, followed
  /// End all timers.
  case hush
}

/// The actions on one counter, whose effects end with it.
public enum ChildErrand: UInt64, NumberedAction {
  case step, work, timer, hush
}

public enum ErrandAction: Equatable, CasePathable, SynchronizableAction, SynchronizableScalar {
  case errand(Errand, String, Int)
  case child(String, ChildErrand)

  public struct AllCasePaths: Sendable {
    public let child = CasePath<ErrandAction, (String, ChildErrand)>(
      embed: { .child($0, $1) },
      extract: { if case .child(let name, let errand) = $0 { (name, errand) } else { nil } })
  }

  public static let allCasePaths = AllCasePaths()

  public var name: String {
    switch self {
    case .errand(let errand, _, _): "\(errand)"
    case .child(_, let errand): "child.\(errand)"
    }
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }

  public func encode(into encoder: inout CBOREncoder) {
    encoder.array(3)
    switch self {
    case .errand(let errand, let name, let number):
      encoder.encode(errand.rawValue)
      encoder.encode(name)
      encoder.encode(number)
    case .child(let name, let errand):
      encoder.encode(1000 + errand.rawValue)
      encoder.encode(name)
      encoder.encode(0)
    }
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let start = decoder.offset
    _ = try decoder.array()
    let code = try decoder.unsigned()
    let name = try decoder.text()
    let number = Int(try decoder.integer())
    decoder.close()
    if let errand = Errand(rawValue: code) {
      self = .errand(errand, name, number)
    } else if code >= 1000, let errand = ChildErrand(rawValue: code - 1000) {
      self = .child(name, errand)
    } else {
      throw CBORError(.unknownCase(code), at: start)
    }
  }
}
