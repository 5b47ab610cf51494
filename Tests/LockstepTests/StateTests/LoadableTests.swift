import Lockstep
import Testing

@Suite struct LoadableTests {
  typealias Numbers = Lockstep.Loadable<SyncMap<String, Int>, String>

  private let values: [Numbers] = {
    var again = Numbers.failed("why", former: ["a": 1, "b": 2])
    again.begin()
    return [
      .idle, .loading(), .loading(former: ["a": 1]), .loaded([:]), .loaded(["a": 1]),
      .loaded(["a": 2, "b": 2]), .failed("why"), .failed("", former: ["a": 1]), again,
    ]
  }()

  @Test func `every change travels as what changed`() throws {
    for old in values { for new in values { try expectLaw(from: old, to: new) } }
    #expect(hex(difference(from: values[4], to: values[2])) == "a100f5")
  }

  @Test func `the phase follows from what was loaded and what runs`() {
    #expect(
      values.map(\.phase) == [
        .idle, .loading, .loading, .loaded, .loaded, .loaded, .failed, .failed, .loading,
      ])
  }

  @Test func `a request ends in its outcome, or in what was before it`() {
    var value = Numbers.failed("why", former: ["a": 1])
    value.begin()
    value.cancel()
    #expect(value == .failed("why", former: ["a": 1]))
    value.begin()
    value.succeed(with: ["c": 3])
    #expect(value == .loaded(["c": 3]))
    value.begin()
    value.fail(with: "again")
    #expect(value == .failed("again", former: ["c": 3]))
  }

  @ObservableState struct Around: Equatable {
    var name = ""
    var numbers = Numbers()
  }

  @Test func `a daemon that restarts runs no request, and keeps the rest`() {
    #expect(EphemeralFields.paths(of: Around.self) == [Path([.integer(1), .integer(0)])])
    var around = Around(name: "a", numbers: values[8])
    around.resetEphemeral()
    #expect(around == Around(name: "a", numbers: .failed("why", former: ["a": 1, "b": 2])))
  }

  @Test func `a client can show a part of it alone`() {
    #expect(Around.path(of: \.numbers.value) == Path([.integer(1), .integer(1)]))
    struct Reader: PartVisitor {
      var found: String?
      mutating func visit<T: Synchronizable>(_ new: T?, _ old: T?) {
        found = "\(new.map { "\($0)" } ?? "-")"
      }
      mutating func visitAbsent() { found = "absent" }
    }
    func part(_ keys: PathKey...) -> String? {
      var reader = Reader()
      Numbers.visit(values[5], nil, at: Path(keys), from: 0, &reader)
      return reader.found
    }
    #expect(part(.integer(0)) == "false" && part(.integer(1), .text("a")) == "2")
    #expect(part(.integer(3)) == "absent" && part(.text("a")) == "absent")
  }

  @Test func `a schema has the fields and the actions by name`() {
    var schema = SchemaBuilder()
    _ = Lockstep.Loadable<Int, String>.schemaKind(in: &schema)
    _ = LoadableAction<Int, String>.schemaKind(in: &schema)
    #expect(
      schema.types["Loadable<Int, String>"]
        == .structure([
          .init(0, "isLoading", .bool, hasDefault: true),
          .init(1, "value", .optional(.integer), hasDefault: true),
          .init(2, "failure", .optional(.text), hasDefault: true),
        ]))
    #expect(
      schema.types["LoadableAction<Int, String>"]
        == .enumeration([
          .init(0, "load"), .init(1, "cancel"), .init(2, "retry"),
          .init(3, "loaded", [.init(1, "_0", .integer)]),
          .init(4, "failed", [.init(1, "_0", .text)]),
        ]))
  }

  @Test func `an action travels as its number, with its value if it has one`() throws {
    typealias Action = LoadableAction<Int, String>
    let expected: [(Action, String)] = [
      (.load, "00"), (.cancel, "01"), (.retry, "02"), (.loaded(7), "820307"),
      (.failed("a"), "82046161"),
    ]
    for (action, form) in expected {
      #expect(hex(bytes(action)) == form)
      #expect(try decoded(Action.self, bytes(action)) == action)
      for (other, _) in expected { #expect(action.isSame(as: other) == (action == other)) }
    }
    #expect(throws: CBORError(.unknownCase(5), at: 0)) { try decoded(Action.self, [5]) }
    #expect(Action.loaded(7)[case: \.loaded] == 7 && Action.failed("a")[case: \.failed] == "a")
    #expect(Action.load.is(\.load) && Action.cancel.is(\.cancel) && !Action.load.is(\.retry))
    #expect(Action.allCasePaths.loaded.embed(1) == .loaded(1))
  }
}
