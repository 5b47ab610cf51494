import CBOR
import Documents
import Lockstep
import Schemas
import Testing
import Values

/// An ordered collection before and after its element has grown a field, and been given other
/// numbers.
enum FirstBoard {
  @ObservableState struct Card: Equatable, Identifiable {
    let id: Int
    var title = ""
  }
  @ObservableState struct State: Equatable {
    var name = "board"
    var cards: SyncIdentifiedArray<Card> = []
  }
}

enum SecondBoard {
  @ObservableState struct Card: Equatable, Identifiable {
    var color = "white"
    var title = ""
    let id: Int
  }
  @ObservableState struct State: Equatable {
    var cards: SyncIdentifiedArray<Card> = []
    var name = "board"
  }
}

@Suite struct IdentifiedFormTests {
  private let first = Schema(state: FirstBoard.State.self) { _ in .value }
  private let second = Schema(state: SecondBoard.State.self) { _ in .value }

  private var state: FirstBoard.State {
    FirstBoard.State(cards: [
      FirstBoard.Card(id: 7, title: "a"), FirstBoard.Card(id: 3, title: "b"),
    ])
  }

  private func encoded(_ value: some Synchronizable) -> [UInt8] {
    var encoder = CBOREncoder()
    value.encode(into: &encoder)
    return encoder.bytes
  }

  private func decoded<T: Synchronizable>(_ bytes: [UInt8], as type: T.Type) throws -> T {
    try CBORDecoder.read(bytes) { decoder throws(CBORError) in
      try T(from: &decoder, seed: .unseeded)
    }
  }

  @Test func `by names an array is rows and order, which the command line shows`() throws {
    let names = try Translation(from: first, to: .names, root: .state)
    let bytes = try CBORDecoder.read(encoded(state)) { decoder throws(CBORError) in
      var encoder = CBOREncoder()
      try names.value(from: &decoder, into: &encoder)
      return encoder.bytes
    }
    let value = try decoded(bytes, as: Value.self)
    let json =
      #"{"cards":{"order":[7,3],"#
      + #""rows":{"3":{"id":3,"title":"b"},"7":{"id":7,"title":"a"}}},"name":"board"}"#
    #expect(JSON.text(value, sortedKeys: true) == json)
  }

  @Test func `a newer peer reads the rows and the order of an older one, and follows it`() throws {
    let translation = try Translation(from: first, to: .schema(second), root: .state)
    var old = state
    let whole = try CBORDecoder.read(encoded(old)) { decoder throws(CBORError) in
      var encoder = CBOREncoder()
      try translation.value(from: &decoder, into: &encoder)
      return encoder.bytes
    }
    var mirror = try decoded(whole, as: SecondBoard.State.self)
    let writes: [(inout FirstBoard.State) -> Void] = [
      { $0.cards.move(id: 3, to: 0) },
      { $0.cards.insert(FirstBoard.Card(id: 5, title: "c"), at: 1) },
      { $0.cards[id: 7]?.title = "A" },
      { $0.cards.remove(id: 3) },
      { $0.cards.sort { $0.title < $1.title } },
    ]
    for write in writes {
      let before = old
      write(&old)
      var patch = CBOREncoder()
      #expect(old.encodeDifference(from: before, into: &patch))
      let translated = try CBORDecoder.read(patch.bytes) { decoder throws(CBORError) in
        var encoder = CBOREncoder()
        let isExpressed = try translation.patch(
          at: translation.place(at: .root), from: &decoder, into: &encoder)
        return isExpressed ? encoder.bytes : nil
      }
      try CBORDecoder.read(#require(translated)) { decoder throws(CBORError) in
        try mirror.apply(patch: &decoder, seed: .unseeded)
      }
      #expect(mirror.cards.map(\.id) == old.cards.map(\.id))
      #expect(mirror.cards.map(\.title) == old.cards.map(\.title))
      #expect(mirror.cards.allSatisfy { $0.color == "white" })
    }
  }
}
