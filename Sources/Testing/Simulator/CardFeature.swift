public import CBOR
public import Lockstep
public import Values

/// An action on cards: what is done, to which card, and a number or position.
public struct CardAction: SynchronizableAction, SynchronizableScalar, Equatable {
  enum Kind: UInt64, CaseIterable {
    case upsert, insert, move, swap, remove, sort
    /// Changes much and then fails: none of it may be visible.
    case fail
  }

  let kind: Kind
  let id: String
  let number: Int

  public var name: String { "\(kind)" }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }

  public func encode(into encoder: inout CBOREncoder) {
    encoder.array(3)
    encoder.encode(kind.rawValue)
    encoder.encode(id)
    encoder.encode(number)
  }

  init(_ kind: Kind, _ id: String, _ number: Int) {
    self.kind = kind
    self.id = id
    self.number = number
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let start = decoder.offset
    _ = try decoder.array()
    let raw = try decoder.unsigned()
    guard let kind = Kind(rawValue: raw) else { throw CBORError(.unknownCase(raw), at: start) }
    self.init(kind, try decoder.text(), Int(try decoder.integer()))
    decoder.close()
  }
}

/// An ordered list as a feature.
public struct CardFeature: Reducer {
  public init() {}

  public func reduce(
    into state: inout CardList, action: CardAction
  ) throws(Rejection) -> Effect<CardAction> {
    let card = SimulatedCard(id: action.id, number: action.number)
    let index = Int(action.number.magnitude % UInt(state.count + 1))
    switch action.kind {
    case .upsert: state.upsert(card)
    case .insert: state.insert(card, at: index)
    case .move: if index < state.count { state.move(id: action.id, to: index) }
    case .swap: if index < state.count { state.swapAt(index, state.count - 1 - index) }
    case .remove: state.remove(id: action.id)
    case .sort: state.sort { $0.number < $1.number }
    case .fail:
      state.reverse()
      state.removeAll { $0.number > 2 }
      throw Rejection(.refused, "failed as asked")
    }
    return .none
  }
}

extension SimulatedFeature<CardFeature, CardList> {
  /// An array of identified elements in the daemon and in its mirrors.
  public static var cards: SimulatedFeature {
    SimulatedFeature(
      CardFeature(), mirroredAs: CardList.self, initial: { CardList() },
      action: { random in
        let kind: CardAction.Kind =
          switch Int.random(in: 0..<20, using: &random) {
          case 0: .sort
          case 1: .fail
          case 2, 3: .swap
          case 4, 5: .remove
          case 6...10: .move
          case 11...14: .insert
          default: .upsert
          }
        return CardAction(
          kind, "c\(Int.random(in: 0..<20, using: &random))", Int.random(in: 0..<40, using: &random)
        )
      },
      path: { _ in .root })
  }
}
