public import CBOR
public import Lockstep
public import Values

/// The payload of an action: the array of its case number and fields. A case without fields would
/// be its number alone; there is none yet.
extension DocumentAction: SynchronizableAction, SynchronizableScalar {
  /// The cases by their numbers, which are part of the protocol.
  enum Case: UInt64, CaseIterable {
    case set = 0
    case merge, remove, increment, append, insert, move, copy, test, transaction, replace

    var name: String { Self.names[Int(rawValue)] }

    /// Made once: to print a case, the runtime looks up the conformances of the type.
    private static let names = allCases.map { "\($0)" }

    /// The number of items in the payload, the case number included.
    var items: ClosedRange<Int> {
      switch self {
      case .set, .merge, .append, .insert, .move, .copy, .test, .replace: 3...3
      case .remove, .transaction: 2...2
      case .increment: 2...3
      }
    }
  }

  var kind: Case {
    switch self {
    case .set: .set
    case .merge: .merge
    case .remove: .remove
    case .increment: .increment
    case .append: .append
    case .insert: .insert
    case .move: .move
    case .copy: .copy
    case .test: .test
    case .transaction: .transaction
    case .replace: .replace
    }
  }

  public var name: String { kind.name }

  // MARK: Decoding

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    var none: DocumentAction?
    try self.init(from: &decoder, seed: seed, reusing: &none)
  }

  /// The path is decoded in the place of the spare one's.
  public init(
    from decoder: inout CBORDecoder, seed: HashSeed, reusing spare: inout DocumentAction?
  ) throws(CBORError) {
    let start = decoder.offset
    let (kind, items) = try Self.open(&decoder)
    guard kind.items.contains(items) else {
      throw CBORError(.notAllowed(Self.arity(kind, items)), at: start)
    }
    if kind == .transaction {
      self = .transaction(try Self.actions(&decoder, seed: seed))
    } else {
      self = try Self.fields(of: kind, items, &decoder, seed: seed, &spare)
    }
    decoder.close()
  }

  /// Read the head and the number of the case. A number alone counts as one item. Every case has at
  /// least two, so once the number of items has been checked, an array is open.
  private static func open(
    _ decoder: inout CBORDecoder
  ) throws(CBORError) -> (kind: Case, items: Int) {
    let start = decoder.offset
    let items: Int
    let number: UInt64
    if try decoder.peekMajor() == .unsigned {
      number = try decoder.unsigned()
      items = 1
    } else {
      items = try decoder.array()
      guard items > 0 else {
        throw CBORError(.notAllowed("an action is [number, fields…], not []"), at: start)
      }
      number = try decoder.unsigned()
    }
    guard let kind = Case(rawValue: number) else {
      throw CBORError(.unknownCase(number), at: start)
    }
    return (kind, items)
  }

  private static func arity(_ kind: Case, _ items: Int) -> String {
    let (least, most) = (kind.items.lowerBound - 1, kind.items.upperBound - 1)
    let fields =
      least == most ? "\(least) field\(least == 1 ? "" : "s")" : "\(least) or \(most) fields"
    return "\(kind.name) has \(fields), not \(items - 1)"
  }

  private static func actions(
    _ decoder: inout CBORDecoder, seed: HashSeed
  ) throws(CBORError) -> [DocumentAction] {
    let count = try decoder.array()
    var actions: [DocumentAction] = []
    // Nothing is reserved: memory grows with the actions read.
    for _ in 0..<count { actions.append(try DocumentAction(from: &decoder, seed: seed)) }
    decoder.close()
    return actions
  }

  private static func fields(
    of kind: Case, _ items: Int, _ decoder: inout CBORDecoder, seed: HashSeed,
    _ spare: inout DocumentAction?
  ) throws(CBORError) -> DocumentAction {
    var path = spare.take()?.intoPath() ?? Path()
    try path.decode(from: &decoder)
    switch kind {
    case .set: return .set(path, try Value(from: &decoder, seed: seed))
    case .merge: return .merge(path, try Value(from: &decoder, seed: seed))
    case .remove: return .remove(path)
    case .increment:
      if items == 2 || decoder.undefinedIfNext() { return .increment(path, by: 1) }
      return .increment(path, by: try Value(from: &decoder, seed: seed))
    case .append: return .append(path, try Value(from: &decoder, seed: seed))
    case .insert: return .insert(path, try Value(from: &decoder, seed: seed))
    case .move: return .move(from: path, to: try Path(from: &decoder))
    case .copy: return .copy(from: path, to: try Path(from: &decoder))
    case .test: return .test(path, try Value(from: &decoder, seed: seed))
    case .replace: return .replace(path, try Value(from: &decoder, seed: seed))
    case .transaction: preconditionFailure("A transaction has actions, not a path.")
    }
  }

  /// The first path of an action that is not used any more.
  private consuming func intoPath() -> Path {
    switch consume self {
    case .set(let path, _), .merge(let path, _), .remove(let path), .increment(let path, _),
      .append(let path, _), .insert(let path, _), .test(let path, _), .replace(let path, _),
      .move(let path, _), .copy(let path, _):
      path
    case .transaction: Path()
    }
  }

  // MARK: Encoding

  /// Append the payload. An increment by 1 leaves the amount out.
  public func encode(into encoder: inout CBOREncoder) {
    switch self {
    case .set(let path, let value), .merge(let path, let value), .append(let path, let value),
      .insert(let path, let value), .test(let path, let value), .replace(let path, let value):
      open(3, &encoder)
      path.encode(into: &encoder)
      value.encode(into: &encoder)
    case .remove(let path):
      open(2, &encoder)
      path.encode(into: &encoder)
    case .increment(let path, let amount):
      let isOne = amount.isSame(as: 1)
      open(isOne ? 2 : 3, &encoder)
      path.encode(into: &encoder)
      if !isOne { amount.encode(into: &encoder) }
    case .move(let source, let target), .copy(let source, let target):
      open(3, &encoder)
      source.encode(into: &encoder)
      target.encode(into: &encoder)
    case .transaction(let actions):
      open(2, &encoder)
      encoder.array(actions.count)
      for action in actions { action.encode(into: &encoder) }
    }
  }

  private func open(_ items: Int, _ encoder: inout CBOREncoder) {
    encoder.array(items)
    encoder.encode(kind.rawValue)
  }
}
