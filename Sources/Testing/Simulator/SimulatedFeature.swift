public import Documents
public import Lockstep
public import Values

/// A feature and its users' behaviour, as a simulation needs them.
public struct SimulatedFeature<R: Reducer, Mirrored: Synchronizable>: Sendable {
  public var reducer: R
  public var middleware: [any Middleware<R.State, R.Action>] = []
  /// Changes the feature's dependencies: by default the simulation's clock and time.
  public var dependencies: @Sendable (inout DependencyValues) -> Void = { _ in }
  /// The state of a daemon whose history begins.
  public var initial: @Sendable () -> R.State
  /// A random action of a user, valid or not; nil for none.
  public var action: @Sendable (inout SplitMix64) -> R.Action?
  /// A random path of a user.
  public var path: @Sendable (inout SplitMix64) -> Path
  /// Ends effects that never end by themselves, so that everything can come to rest.
  public var hush: R.Action?
  /// The parts of the state that have a reducer of their own, by which mirrors of them show actions; nil
  /// if there are none.
  public var part: (any SimulatedPart<R.Action>)?

  public init(
    _ reducer: R, mirroredAs: Mirrored.Type, initial: @escaping @Sendable () -> R.State,
    action: @escaping @Sendable (inout SplitMix64) -> R.Action?,
    path: @escaping @Sendable (inout SplitMix64) -> Path
  ) {
    self.reducer = reducer
    self.initial = initial
    self.action = action
    self.path = path
  }
}

// MARK: The document

extension SimulatedFeature<DocumentFeature, Value> {
  /// The stock daemon's document, with few names so that users conflict.
  public static var document: SimulatedFeature {
    SimulatedFeature(
      DocumentFeature(), mirroredAs: Value.self, initial: { Document(["a": ["b": 1], "l": []]) },
      action: { DocumentAction.random(using: &$0, depth: 0) },
      path: { Path.random(using: &$0, longest: 2) })
  }
}

extension Path {
  static func random(using random: inout SplitMix64, longest: Int) -> Path {
    let names = ["a", "b", "c", "l", "é", "x/y"]
    return Path(
      (0..<Int.random(in: 0...longest, using: &random)).map { _ in
        .text(names[Int.random(in: 0..<names.count, using: &random)])
      })
  }
}

extension Value {
  static func random(using random: inout SplitMix64, depth: Int) -> Value {
    switch Int.random(in: 0..<(depth < 3 ? 12 : 8), using: &random) {
    case 0: return .null
    case 1: return .bool(Bool.random(using: &random))
    case 2, 3: return .integer(Int64.random(in: -5...1000, using: &random))
    case 4: return Value(UInt64.random(in: .max - 3 ... .max, using: &random))
    case 5: return .double([0.5, -0.0, .nan, .infinity][Int.random(in: 0...3, using: &random)])
    case 6:
      return .text(String(repeating: "é", count: Int.random(in: 0...9, using: &random)))
    case 7:
      return .bytes([UInt8](repeating: 7, count: Int.random(in: 0...200, using: &random)))
    case 8, 9:
      return .array(
        TreeArray(
          (0..<Int.random(in: 0...5, using: &random)).map { _ in
            Value.random(using: &random, depth: depth + 1)
          }))
    default:
      var entries = TrieMap<String, Value>()
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        let names = ["a", "b", "c", "l", "é", "x/y"]
        entries.updateValue(
          Value.random(using: &random, depth: depth + 1),
          forKey: names[Int.random(in: 0..<names.count, using: &random)])
      }
      return .object(entries)
    }
  }
}

extension DocumentAction {
  static func random(using random: inout SplitMix64, depth: Int) -> DocumentAction {
    let path = Path.random(using: &random, longest: 3)
    // The root is replaced rarely, so that the document grows.
    let place = path.keys.isEmpty && Int.random(in: 0..<10, using: &random) > 0 ? ["a"] : path
    switch Int.random(in: 0..<(depth == 0 ? 22 : 18), using: &random) {
    case 0...3: return .set(place, .random(using: &random, depth: 0))
    case 4: return .merge(place, .random(using: &random, depth: 0))
    case 5, 6: return .remove(path)
    case 7...9: return .increment(path, by: .integer(Int64.random(in: 0...2, using: &random)))
    case 10...12: return .append(["l"], .random(using: &random, depth: 1))
    case 13:
      return .insert(Path(["l", .text("0")]), .random(using: &random, depth: 1))
    case 14: return .move(from: path, to: Path.random(using: &random, longest: 2))
    case 15: return .copy(from: path, to: Path.random(using: &random, longest: 3))
    case 16: return .test(path, 1)
    case 17: return .replace(place, .random(using: &random, depth: 0))
    case 18: return .remove(["l", .text("0")])
    // Keeps the growth by copies small.
    case 19: return .set([], ["a": ["b": ["c": 0]], "l": [1, 2, 3]])
    default:
      return .transaction(
        (0..<Int.random(in: 0...4, using: &random)).map { _ in
          .random(using: &random, depth: 1)
        })
    }
  }
}
