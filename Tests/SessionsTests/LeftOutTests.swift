import CBOR
import DaemonCore
import Documents
import Lockstep
import Records
import Schemas
import Testing
import Values
import Wire

/// A feature in three versions, each of which knows less than the one before.
private enum Rich {
  struct Row: Record, Equatable {
    var title = ""
    var colour: String?
    var weight = 1
    static let name = "Row"
    static var parts: [any RecordPart<Self>] {
      [
        Part(0, "title", \Self.title), Part(1, "colour", \Self.colour),
        Part(2, "weight", \Self.weight, hasDefault: true),
      ]
    }
  }

  struct State: Record, Equatable {
    var name = ""
    var secrets: [String] = []
    var first = Row()
    var second: Row?
    var rows = SyncMap<Int, Row>()
    var list = SyncArray<Row>()
    static let name = "State"
    static var parts: [any RecordPart<Self>] {
      [
        Part(0, "name", \Self.name, hasDefault: true),
        Part(1, "secrets", \Self.secrets, hasDefault: true),
        Part(2, "first", \Self.first), Part(3, "second", \Self.second),
        Part(4, "rows", \Self.rows), Part(5, "list", \Self.list),
      ]
    }
  }
}

/// Knows neither weights nor secrets, and numbers its fields in another order.
private enum Middle {
  struct Row: Record, Equatable {
    var title = ""
    var colour: String?
    static let name = "Row"
    static var parts: [any RecordPart<Self>] {
      [Part(7, "colour", \Self.colour), Part(1, "title", \Self.title)]
    }
  }

  struct State: Record, Equatable {
    var name = ""
    var first = Row()
    var second: Row?
    var rows = SyncMap<Int, Row>()
    var list = SyncArray<Row>()
    static let name = "State"
    static var parts: [any RecordPart<Self>] {
      [
        Part(1, "rows", \Self.rows), Part(2, "list", \Self.list), Part(3, "first", \Self.first),
        Part(4, "second", \Self.second), Part(5, "name", \Self.name, hasDefault: true),
      ]
    }
  }
}

/// Knows only titles.
private enum Poor {
  struct Row: Record, Equatable {
    var title = ""
    static let name = "Row"
    static var parts: [any RecordPart<Self>] { [Part(0, "title", \Self.title)] }
  }

  struct State: Record, Equatable {
    var first = Row()
    var second: Row?
    var rows = SyncMap<Int, Row>()
    var list = SyncArray<Row>()
    static let name = "State"
    static var parts: [any RecordPart<Self>] {
      [
        Part(0, "first", \Self.first), Part(1, "second", \Self.second),
        Part(2, "rows", \Self.rows), Part(3, "list", \Self.list),
      ]
    }
  }
}

/// A version that calls a field by a name of ours, and means another kind by it.
private struct Foreign: Record, Equatable {
  var first = Poor.Row()
  var second: Poor.Row?
  var rows = SyncMap<Int, Poor.Row>()
  var list = SyncArray<Poor.Row>()
  var secrets = 0
  var name = ""
  static let name = "State"
  static var parts: [any RecordPart<Self>] {
    [
      Part(0, "first", \Self.first), Part(1, "second", \Self.second),
      Part(2, "rows", \Self.rows), Part(3, "list", \Self.list),
      Part(4, "secrets", \Self.secrets, hasDefault: true),
      Part(5, "name", \Self.name, hasDefault: true),
    ]
  }
}

/// A feature that began with nothing.
private enum Series {
  @ObservableState(frozen: true) enum NewMood: Equatable { case calm, wild }
  @ObservableState(frozen: true) enum OldMood: Equatable { case calm }

  @ObservableState struct NewEpisode: Equatable {
    var title = ""
    var stars = 0
  }

  @ObservableState struct OldEpisode: Equatable { var title = "" }

  @ObservableState struct New: Equatable {
    var name = ""
    var count = 0
    var episodes: [NewEpisode] = []
    var mood = NewMood.calm
    @Ephemeral var viewers: SyncMap<Int, String> = [:]
  }

  @ObservableState struct Old: Equatable {
    var name = ""
    var count = 0
    var episodes: [OldEpisode] = []
    var mood = OldMood.calm
  }

  @ObservableState struct Oldest: Equatable { var name = "" }

  @ObservableState struct Listed: Equatable {
    var byNumber: SyncMap<Int, NewEpisode> = [:]
    var episodes: [NewEpisode] = []
  }

  @ObservableState struct OldListed: Equatable {
    var byNumber: SyncMap<Int, OldEpisode> = [:]
    var episodes: [OldEpisode] = []
  }
}

/// What one version of a feature keeps and the next does not know comes back with a version that does.
@Suite struct LeftOutTests {
  /// What a process begins with.
  private struct Kept<State> {
    var state: State
    var leftOut: [LeftOut]
    /// The names of what is lost.
    var dropped: [String]
  }

  /// How a state goes from one process to the next.
  enum Way: CaseIterable { case journal, handOver }

  private static func schema<S: Synchronizable>(_ type: S.Type) -> Schema {
    Schema(state: S.self) { _ in .value }
  }

  /// The state with which a process of another version begins, and what it does not know.
  private static func pass<S: Synchronizable, T: Synchronizable>(
    _ state: S, _ leftOut: [LeftOut], by way: Way, as type: T.Type
  ) throws -> Kept<T> {
    let (former, current) = (schema(S.self), schema(T.self))
    var kept = RestoredState(
      state: state, epoch: 1, seed: .unseeded, run: 1, runs: [JournalRun(run: 1, base: 0)],
      revision: 0, base: 0, sequence: 0)
    kept.leftOut = leftOut
    switch way {
    case .handOver:
      let image = HandOver(kept: kept, connections: [], connectionCount: 0)
      let next = try HandOver<T>(image.encoded(schema: former), schema: current)
      return Kept(state: next.kept.state, leftOut: next.kept.leftOut, dropped: next.dropped)
    case .journal:
      let (head, bytes) = PendingSnapshot(
        handing: kept, schema: former, time: Timestamp(nanoseconds: 0)
      ).encode()
      let typed = try JournalReplay<T>(from: head, bytes, schema: current, seed: .unseeded)
      if !typed.needsUntyped {
        return Kept(state: typed.state, leftOut: typed.leftOut, dropped: typed.dropped)
      }
      let untyped = try JournalReplay<UntypedState>(
        from: head, bytes, schema: current, seed: .unseeded)
      let next = try JournalReplay<T>(translating: untyped, to: current)
      return Kept(state: next.state, leftOut: next.leftOut, dropped: next.dropped)
    }
  }

  private static func pass<S: Synchronizable>(
    _ kept: Kept<some Synchronizable>, by way: Way, as type: S.Type
  ) throws -> Kept<S> {
    try pass(kept.state, kept.leftOut, by: way, as: type)
  }

  // MARK: The model

  private static func random(_ random: inout SplitMix64) -> Rich.State {
    func text() -> String { "t\(random.next() % 50)" }
    func row() -> Rich.Row {
      Rich.Row(
        title: text(), colour: random.next().isMultiple(of: 3) ? nil : text(),
        weight: Int(random.next() % 9))
    }
    var state = Rich.State(name: text(), first: row())
    for _ in 0..<(random.next() % 3) { state.secrets.append(text()) }
    if random.next().isMultiple(of: 2) { state.second = row() }
    for key in 0..<Int(random.next() % 40) { state.rows[key] = row() }
    for _ in 0..<(random.next() % 3) { state.list.append(row()) }
    return state
  }

  private static func poor(_ row: Rich.Row) -> Poor.Row { Poor.Row(title: row.title) }

  private static func poor(_ state: Rich.State) -> Poor.State {
    var poor = Poor.State(first: poor(state.first), second: state.second.map(poor))
    for (key, row) in state.rows { poor.rows[key] = Self.poor(row) }
    for row in state.list { poor.list.append(Self.poor(row)) }
    return poor
  }

  /// What an older version does meanwhile.
  private static func change(_ state: inout Poor.State, _ random: inout SplitMix64) {
    for _ in 0..<(random.next() % 12) {
      let key = Int(random.next() % 45)
      switch random.next() % 6 {
      case 0: state.rows[key] = nil
      case 1: state.rows[key] = Poor.Row(title: "new")
      case 2: state.rows[key]?.title += "!"
      case 3: state.first = Poor.Row(title: "other")
      case 4: state.second = random.next().isMultiple(of: 2) ? nil : Poor.Row(title: "second")
      default: state.list.insert(Poor.Row(title: "listed"), at: 0)
      }
    }
  }

  /// A row that has been found again, of which `old` is what a version kept that knew all of it.
  private static func rich(_ row: Poor.Row, _ old: Rich.Row?) -> Rich.Row {
    Rich.Row(title: row.title, colour: old?.colour, weight: old?.weight ?? 1)
  }

  private static func rich(_ state: Poor.State, _ old: Rich.State) -> Rich.State {
    var rich = Rich.State(
      name: old.name, secrets: old.secrets, first: rich(state.first, old.first),
      second: state.second.map { Self.rich($0, old.second) })
    for (key, row) in state.rows { rich.rows[key] = Self.rich(row, old.rows[key]) }
    // An element of an array cannot be found again.
    for row in state.list { rich.list.append(Self.rich(row, nil)) }
    return rich
  }

  // MARK: Tests

  @Test(arguments: Way.allCases, [1 as UInt64, 2, 3])
  func `what older versions leave out is back with a newer one, whatever they have changed`(
    way: Way, seed: UInt64
  ) throws {
    var random = SplitMix64(seed)
    for _ in 0..<100 {
      let rich = Self.random(&random)
      var kept = try Self.pass(rich, [], by: way, as: Poor.State.self)
      #expect(kept.state == Self.poor(rich))
      for _ in 0..<(random.next() % 3) {
        Self.change(&kept.state, &random)
        // Another process of the same version.
        kept = try Self.pass(kept, by: way, as: Poor.State.self)
      }
      let back = try Self.pass(kept, by: way, as: Rich.State.self)
      #expect(back.state == Self.rich(kept.state, rich))
      #expect(back.leftOut.isEmpty)
    }
  }

  @Test(arguments: Way.allCases, [1 as UInt64, 2, 3])
  func `a version between takes what it knows, and the rest waits on`(
    way: Way, seed: UInt64
  ) throws {
    var random = SplitMix64(seed)
    for _ in 0..<100 {
      let rich = Self.random(&random)
      var poor = try Self.pass(rich, [], by: way, as: Poor.State.self)
      Self.change(&poor.state, &random)
      var expected = Self.rich(poor.state, rich)
      var middle = try Self.pass(poor, by: way, as: Middle.State.self)
      #expect(middle.state.name == rich.name)
      #expect(middle.state.first.colour == rich.first.colour)
      // What it changes itself is not undone.
      middle.state.name = "renamed"
      middle.state.first.colour = "green"
      (expected.name, expected.first.colour) = ("renamed", "green")
      let last = try Self.pass(middle, by: way, as: Rich.State.self)
      #expect(last.state == expected && last.leftOut.isEmpty)
    }
  }

  @Test(arguments: Way.allCases)
  func `a field of another kind waits, and the others are the version's own from then on`(
    way: Way
  ) throws {
    var rich = Rich.State(name: "a", secrets: ["x"])
    rich.rows[1] = Rich.Row(title: "one", colour: "red", weight: 5)
    let poor = try Self.pass(rich, [], by: way, as: Poor.State.self)
    // It has a field of the same name and another kind.
    var foreign = try Self.pass(poor, by: way, as: Foreign.self)
    #expect(foreign.state.secrets == 0 && foreign.state.name == "a")
    foreign.state.secrets = 3
    foreign.state.name = "b"
    let again = try Self.pass(foreign, by: way, as: Poor.State.self)
    #expect(again.leftOut.count == 2)
    let back = try Self.pass(again, by: way, as: Rich.State.self)
    rich.name = "b"
    #expect(back.state == rich)
    // Its own field still waits for it.
    #expect(back.leftOut.count == 1)
    let third = try Self.pass(
      (try Self.pass(back, by: way, as: Poor.State.self)), by: way, as: Foreign.self)
    #expect(third.state.secrets == 3)
  }

  @Test(arguments: Way.allCases)
  func `at most eight versions are remembered, the newest`(way: Way) throws {
    let forgotten = (0..<20).map { number in
      LeftOut(
        schema: Schema(
          state: .type("State"), action: .value,
          types: ["State": .structure([.init(0, "f\(number)", .text, hasDefault: true)])]),
        patch: encoded { encoder in
          encoder.map(1)
          encoder.encode(0)
          encoder.array(1)
          encoder.encode("old")
        })
    }
    let poor = try Self.pass(Rich.State(name: "a"), forgotten, by: way, as: Poor.State.self)
    #expect(poor.leftOut.dropLast() == forgotten.suffix(7))
    let back = try Self.pass(poor, by: way, as: Rich.State.self)
    #expect(back.state.name == "a" && back.leftOut == forgotten.suffix(7))
  }

  @Test(arguments: Way.allCases)
  func `what a version between loses of it is told, so that a copy is made`(way: Way) throws {
    var new = Series.New()
    new.episodes = [.init(title: "pilot", stars: 5)]
    new.mood = .wild
    let none = try Self.pass(new, [], by: way, as: Series.Oldest.self)
    #expect(none.dropped.isEmpty && none.leftOut.count == 1)
    let old = try Self.pass(none, by: way, as: Series.Old.self)
    #expect(old.state.episodes == [.init(title: "pilot")] && old.state.mood == .calm)
    #expect(
      Set(old.dropped) == ["state.mood.wild", "state.episodes[].stars"], "\(old.dropped)")
    // What it has set since is not undone, though not all could be translated.
    var changed = old
    changed.state.count = 7
    let back = try Self.pass(changed, by: way, as: Series.New.self)
    #expect(back.state.count == 7 && back.state.mood == .calm && back.leftOut.isEmpty)
    #expect(back.state.episodes == [.init(title: "pilot", stars: 0)])
  }

  @Test(arguments: Way.allCases)
  func `ephemeral fields that were handed over are not put back`(way: Way) throws {
    var new = Series.New()
    new.count = 3
    new.viewers = [1: "Ann"]
    let none = try Self.pass(new, [], by: .handOver, as: Series.Oldest.self)
    let back = try Self.pass(none, by: way, as: Series.New.self)
    #expect(back.state.count == 3 && back.state.viewers.isEmpty)
  }

  @Test(arguments: Way.allCases)
  func `rows of a type that a list has, too, are kept where they have keys`(way: Way) throws {
    var new = Series.Listed()
    new.byNumber[1] = .init(title: "pilot", stars: 5)
    new.episodes = [.init(title: "pilot", stars: 5)]
    let old = try Self.pass(new, [], by: way, as: Series.OldListed.self)
    // Those of the list are lost, so that a copy is made.
    #expect(!old.dropped.isEmpty && old.leftOut.count == 1)
    let back = try Self.pass(old, by: way, as: Series.Listed.self)
    #expect(back.state.byNumber == new.byNumber)
    #expect(back.state.episodes == [.init(title: "pilot")])
  }

  @Test func `a daemon has it in its snapshots and hand-overs`() throws {
    let poor = try Self.pass(Rich.State(name: "a"), [], by: .journal, as: Poor.State.self)
    var kept = RestoredState(
      state: Document([:]), epoch: 1, seed: .unseeded, run: 1, runs: [JournalRun(run: 1, base: 0)],
      revision: 0, base: 0, sequence: 0)
    kept.leftOut = poor.leftOut
    let server = Server(
      restoring: kept, reducer: DocumentFeature(), durability: .sync, at: Instant(nanoseconds: 0))
    #expect(!poor.leftOut.isEmpty && server.handOver.kept.leftOut == poor.leftOut)
    let (head, bytes) = server.pendingSnapshot.encode()
    let replay = try JournalReplay<Document>(
      from: head, bytes, schema: DocumentFeature.schema, seed: server.seed)
    #expect(!replay.isTranslated && replay.leftOut == poor.leftOut)
    let next = replay.restoredState(epoch: 1, runs: kept.runs, revision: nil)
    #expect(next.leftOut == poor.leftOut)
  }

  @Test(arguments: Way.allCases)
  func `of what takes more than 32 MB the oldest is given up, and told`(way: Way) throws {
    var new = Series.New(name: "a")
    new.episodes = [.init(title: String(repeating: "x", count: 1 << 24))]
    let once = try Self.pass(new, [], by: way, as: Series.Oldest.self)
    #expect(once.leftOut.count == 1 && once.dropped.isEmpty)
    var rich = Rich.State()
    rich.secrets = [String(repeating: "y", count: 1 << 24)]
    let twice = try Self.pass(rich, once.leftOut, by: way, as: Poor.State.self)
    #expect(twice.leftOut.count == 1)
    #expect(twice.dropped.contains("state.episodes") && !twice.dropped.contains("state.secrets"))
    #expect(try Self.pass(twice, by: way, as: Rich.State.self).state == rich)
  }

  @Test func `the names of what waits and of what is lost are told apart`() throws {
    let translation = try Translation(
      from: Self.schema(Rich.State.self), to: .schema(Self.schema(Poor.State.self)), root: .state)
    // Rows are in a list, too, so those of the list are lost.
    #expect(translation.leftOut == ["state.name", "state.secrets"])
    #expect(translation.dropped.map { $0.split(separator: ".").last } == ["colour", "weight"])
    let middle = try Translation(
      from: Self.schema(Middle.State.self), to: .schema(Self.schema(Rich.State.self)), root: .state)
    #expect(middle.leftOut.isEmpty && middle.dropped.isEmpty)
  }

  @Test func `damaged bytes of what was left out are refused, or lead to a state, and never crash`()
    throws
  {
    var random = SplitMix64(5)
    let rich = Self.random(&random)
    let poor = try Self.pass(rich, [], by: .handOver, as: Poor.State.self)
    let patch = try #require(poor.leftOut.first).patch
    for _ in 0..<3000 {
      var changed = patch
      changed[Int(random.next() % UInt64(changed.count))] = UInt8(random.next() & 0xff)
      let item = LeftOut(schema: Self.schema(Rich.State.self), patch: changed)
      _ = try? Self.pass(poor.state, [item], by: .journal, as: Rich.State.self)
    }
  }
}
