public import CBOR
public import Lockstep
public import Values

/// An ordered list whose rows have a reducer of their own, which uses the context of its reduction.
public struct DealtCards: Reducer {
  public init() {}

  public var body: some Reducer<CardList, DealAction> {
    Reduce<CardList, DealAction> { (state, action) throws(Rejection) in
      guard case .deck(let action) = action else { return .none }
      return try CardFeature().reduce(into: &state, action: action).map { .deck($0) }
    }
    .forEach(\.self, action: \.card) { CardRow() }
  }
}

/// One card of the list.
struct CardRow: Reducer {
  @Dependency(\.random) private var random
  @Dependency(\.origin) private var origin

  func reduce(
    into card: inout SimulatedCard, action: CardRowAction
  ) throws(Rejection) -> Effect<CardRowAction> {
    switch action {
    case .raise: card.number &+= 1
    case .draw: card.number = random { Int.random(in: 0..<1_000_000, using: &$0) }
    case .sign:
      guard case .client(let client) = origin else {
        throw Rejection(.refused, "only a client signs")
      }
      card.number = Int(clamping: client.uid)
    case .work:
      card.number &+= 1
      return .run { send in await send(.raise) }
    case .fail:
      card.number = -1
      throw Rejection(.refused, "failed as asked")
    }
    return .none
  }
}

// MARK: Actions

public enum DealAction: Equatable, CasePathable, SynchronizableAction, SynchronizableScalar {
  case deck(CardAction)
  case card(String, CardRowAction)

  public struct AllCasePaths: Sendable {
    public let card = CasePath<DealAction, (String, CardRowAction)>(
      embed: { .card($0, $1) },
      extract: { if case .card(let id, let action) = $0 { (id, action) } else { nil } })
  }

  public static let allCasePaths = AllCasePaths()

  public var name: String {
    switch self {
    case .deck(let action): action.name
    case .card(_, let action): "card.\(action.name)"
    }
  }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .value }

  public func encode(into encoder: inout CBOREncoder) {
    encoder.array(2)
    switch self {
    case .deck(let action):
      encoder.encodeUndefined()
      action.encode(into: &encoder)
    case .card(let id, let action):
      encoder.encode(id)
      action.encode(into: &encoder)
    }
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    let start = decoder.offset
    guard try decoder.array() == 2 else { throw CBORError(.numberOutOfRange, at: start) }
    if decoder.undefinedIfNext() {
      self = .deck(try CardAction(from: &decoder, seed: seed))
    } else {
      self = .card(try decoder.text(), try CardRowAction(from: &decoder, seed: seed))
    }
    decoder.close()
  }
}

/// The actions on one card.
public enum CardRowAction: UInt64, NumberedAction {
  case raise
  /// Random: the daemon draws another number than a client.
  case draw
  /// Takes the number of the user who sends it.
  case sign
  /// An effect sends a further action: in the daemon only.
  case work
  /// Changes the card and then fails.
  case fail
}

// MARK: In a simulation

/// The rows of the list: each is at the path of its id.
private struct DealtRows: SimulatedPart {
  func part(
    at path: Path
  ) -> (child: OptionalPart<CardRow>, actions: CasePath<DealAction, CardRowAction>)? {
    guard case .text(let id) = path.keys.last, path.keys == CardList.path(to: id) else {
      return nil
    }
    return (OptionalPart(CardRow()), DealAction.allCasePaths.card.row(id))
  }

  func isOfParts(_ action: DealAction) -> Bool {
    if case .card = action { true } else { false }
  }
}

extension SimulatedFeature<DealtCards, CardList> {
  /// An array of identified elements, of which clients also mirror single rows.
  public static var dealtCards: SimulatedFeature {
    let card: @Sendable (inout SplitMix64) -> String = {
      "c\(Int.random(in: 0..<6, using: &$0))"
    }
    var feature = SimulatedFeature(
      DealtCards(), mirroredAs: CardList.self, initial: { CardList() },
      action: { random in
        if Int.random(in: 0..<5, using: &random) > 1 {
          let actions = CardRowAction.allCases
          return .card(
            card(&random), actions[Int.random(in: 0..<actions.count, using: &random)])
        }
        let kind: CardAction.Kind =
          switch Int.random(in: 0..<16, using: &random) {
          case 0: .sort
          case 1: .fail
          case 2...4: .remove
          case 5...8: .move
          case 9...12: .insert
          default: .upsert
          }
        return .deck(CardAction(kind, card(&random), Int.random(in: 0..<40, using: &random)))
      },
      path: { random in
        Int.random(in: 0..<3, using: &random) == 0
          ? .root : Path(CardList.path(to: card(&random)))
      })
    feature.part = DealtRows()
    // Drawn from the seed of a reduction, so that what a client shows twice is the same.
    feature.dependencies = { $0.random = .live }
    return feature
  }
}
