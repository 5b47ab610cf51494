import Documents
import EventLoop
import Lockstep
import Testing
import Values

@testable import CommandLineTool

/// Actions of rows, and fields that are left out, for a daemon of which only the schema is known.
@Suite struct RowActionTests {
  @Action enum Bed: Equatable {
    case water(seconds: Int, liters: Double = 1)
    case plant(String)
    case drain
  }

  @ObservableState(frozen: true) enum Screen: Equatable {
    case list
    case editor(text: String = "", line: Int? = 7)
  }

  @Action enum Garden: Equatable {
    case beds(Int, Bed)
    case house(room: String, floor: Int = 0, action: Bed)
    case show(Screen)
    case zoom(Int = 100)
    case move(Int, Int = 1)
  }

  /// The schema as a client receives it.
  private static let schema: Schema = {
    var encoder = CBOREncoder()
    Schema(state: Int.self) { Garden.schemaKind(in: &$0) }.encode(into: &encoder)
    let decoded = try? CBORDecoder.read(encoder.bytes) { (decoder) throws(CBORError) in
      try Schema(from: &decoder)
    }
    return decoded ?? Schema(state: .value, action: .value)
  }()

  private func action(_ words: [String]) throws -> Garden {
    let payload = try Send.payload(words, schema: Self.schema)
    return try CBORDecoder.read(payload) { (decoder) throws(CBORError) in
      try Garden(from: &decoder, seed: HashSeed(1))
    }
  }

  @Test(arguments: [
    ("beds.water 3 60", Garden.beds(3, .water(seconds: 60))),
    ("beds 3 water 60", .beds(3, .water(seconds: 60))),
    ("beds.water 3 60 2.5", .beds(3, .water(seconds: 60, liters: 2.5))),
    ("beds.water 3 liters=2 seconds=60", .beds(3, .water(seconds: 60, liters: 2))),
    ("beds 3 water liters=2 60", .beds(3, .water(seconds: 60, liters: 2))),
    ("beds 3 drain", .beds(3, .drain)), ("beds.drain 3", .beds(3, .drain)),
    ("beds.plant 3 water", .beds(3, .plant("water"))),
    (#"beds 3 {"water":{"seconds":60}}"#, .beds(3, .water(seconds: 60))),
    (
      "house.water 60 room=north floor=2",
      .house(room: "north", floor: 2, action: .water(seconds: 60))
    ),
    ("house.plant north 2 rose", .house(room: "north", floor: 2, action: .plant("rose"))),
    ("house north 2 plant rose", .house(room: "north", floor: 2, action: .plant("rose"))),
  ])
  func `a row's action is sent by the name by which it is shown`(
    _ words: String, _ action: Garden
  ) throws {
    #expect(try self.action(words.split(separator: " ").map(String.init)) == action)
    let name = words.split(separator: " ")[0]
    #expect(!name.contains(".") || action.name == name)
  }

  @Test(arguments: [
    ("show editor", Garden.show(.editor())), ("show.editor", .show(.editor())),
    ("show.editor text=a", .show(.editor(text: "a"))),
    ("show.editor line=3", .show(.editor(line: 3))),
    (#"show {"editor":{"line":null}}"#, .show(.editor(line: nil))),
    (#"show "editor""#, .show(.editor())), ("show list", .show(.list)),
    ("zoom", .zoom()), ("zoom 5", .zoom(5)), ("move 5", .move(5)), ("move 5 6", .move(5, 6)),
    (#"{"zoom":null}"#, .zoom()), (#"{"move":[5,null]}"#, .move(5)), (#"{"move":[5]}"#, .move(5)),
  ])
  func `a field that is left out has its default`(_ words: String, _ action: Garden) throws {
    #expect(try self.action(words.split(separator: " ").map(String.init)) == action)
  }

  @Test(arguments: [
    ("beds.water 3", "beds.water needs more: 'beds.water <Int> seconds=<Int> [liters=<Double>]'."),
    ("beds.water", "beds needs more: 'beds <Int> <RowActionTests.Bed>'."),
    (
      "beds.wter 3 60",
      #"there is no action "beds.wter"; under beds there are: drain, plant, water."#
        + #" Did you mean "water"?"#
    ),
    ("beds.drain 3 4", "beds.drain carries nothing: what is '4'?"),
    ("beds.water x 60", "beds carries Int, and 'x' is not JSON for one."),
    ("beds 3 water 60 2 9", "'9' is too much: 'beds.water <Int> seconds=<Int> [liters=<Double>]'."),
    ("move", "move needs more: 'move <Int> [<Int>]'."),
  ])
  func `an error shows the whole way to write the action`(_ words: String, _ message: String) {
    let failure = #expect(throws: Failure.self) {
      try Send.payload(words.split(separator: " ").map(String.init), schema: Self.schema)
    }
    #expect(failure?.message == message)
    #expect(failure?.status == .usage)
  }

  @Test(
    arguments: [
      ("beds.water", [3, ["seconds": 60]], Garden.beds(3, .water(seconds: 60))),
      ("beds.drain", [3], .beds(3, .drain)),
      (
        "house.plant", ["north", 2, "rose"], .house(room: "north", floor: 2, action: .plant("rose"))
      ),
    ] as [(String, Value, Garden)])
  func `programs send a row's action by its name, too`(
    _ name: String, _ content: Value, _ action: Garden
  ) throws {
    let value = try ActionJSON.action(named: name, carrying: content, schema: Self.schema)
    let payload = try ActionJSON.payload(of: value, schema: Self.schema)
    let sent = try CBORDecoder.read(payload) { (decoder) throws(CBORError) in
      try Garden(from: &decoder, seed: HashSeed(1))
    }
    #expect(sent == action)
  }

  @Test func `a row's action without its key is refused`() {
    for content in [nil, 3, [], [1, 2, 3]] as [Value?] {
      #expect(throws: ActionJSONError.self) {
        try ActionJSON.action(named: "beds.water", carrying: content, schema: Self.schema)
      }
    }
  }
}
