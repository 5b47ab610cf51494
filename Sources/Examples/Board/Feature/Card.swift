public import Lockstep

/// Something to do.
@ObservableState public struct Card: Equatable, Identifiable, Sendable {
  public var id: Int
  public var title: String

  public init(id: Int, title: String) {
    self.id = id
    self.title = title
  }
}

/// A column of cards, from the top down.
@ObservableState public struct Column: Equatable, Identifiable, Sendable {
  /// The name.
  public var id: String
  public var cards: SyncIdentifiedArray<Card> = []

  public init(id: String, cards: SyncIdentifiedArray<Card> = []) {
    self.id = id
    self.cards = cards
  }
}

/// Where a card is.
@ObservableState public struct Place: Equatable, Sendable {
  public var column: Column.ID
  /// 0 for the top.
  public var row: Int

  public init(column: Column.ID, row: Int) {
    self.column = column
    self.row = row
  }
}

/// A move of a card, so that it can be undone.
@ObservableState public struct Move: Equatable, Sendable {
  public var card: Card.ID
  /// Who moved it.
  public var name: String
  public var from: Place
  public var to: Place

  public init(card: Card.ID, name: String, from: Place, to: Place) {
    self.card = card
    self.name = name
    self.from = from
    self.to = to
  }
}

/// The hand of a client that has the board open.
@ObservableState public struct Hand: Equatable, Sendable {
  public var name: String
  /// The card that it holds: no other client can move it.
  public var card: Card.ID?

  public init(name: String, card: Card.ID? = nil) {
    self.name = name
    self.card = card
  }
}
