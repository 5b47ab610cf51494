import Lockstep
import LockstepClient
import ShelfFeature
import Testing

/// The feature as it was before there were wild records and rooms.
private struct OldShelf: Reducer {
  @ObservableState enum Mood: Equatable {
    case calm
    @Fallback case unknown
  }

  @ObservableState struct Record: Equatable, Identifiable {
    var id: Int
    var title: String
    var mood = Mood.unknown
  }

  @ObservableState struct State: Equatable {
    var records: SyncIdentifiedArray<Record> = []
    var volume = 5
  }

  @Action enum Action: Equatable, Sendable { case put(String) }

  func reduce(into state: inout State, action: Action) -> Effect<Action> { .none }
}

/// What a feature is made of, once by real processes: the daemon is one, and this is its client.
@Suite(.timeLimit(.minutes(2))) struct ShelfProcessTests {
  private typealias Mirror = MirrorStore<Shelf>

  private let shelf: ShelfProcess

  init() throws { shelf = try ShelfProcess() }

  private func connect() async throws -> Mirror { try await Mirror.connect(shelf.options) }

  /// The actions whose effects play a record, in the order of their start.
  private func playing(_ mirror: Mirror) async throws -> [String] {
    try await running("key", "play", mirror)
  }

  /// The actions of the daemon's effects of which a member is this text.
  private func running(
    _ member: String, _ text: String, _ mirror: Mirror
  ) async throws -> [String] {
    try Task.checkCancellation()
    let report = try await mirror.connection.report("effects")
    guard case .array(let effects) = report else {
      Issue.record("\(report)")
      return []
    }
    return effects.compactMap { effect in
      guard case .object(let members) = effect, members[member] == .text(text),
        case .text(let action)? = members["action"]
      else { return nil }
      return action
    }
  }

  /// The rejection of what `body` sends.
  private func rejection(_ body: () async throws -> Void) async -> Rejection? {
    do {
      try await body()
      return nil
    } catch {
      guard case ClientError.rejected(let rejection) = error else {
        Issue.record("\(error)")
        return nil
      }
      return Rejection(Rejection.Code(rawValue: rejection.code), rejection.message)
    }
  }

  @Test func `TCA forEach: rows keep their identity when others move and come before them`()
    async throws
  {
    let (first, second) = (try await connect(), try await connect())
    for title in ["Blue", "Red", "Green"] { try await first.send(.put(title)) }
    let red = try await second.scope(state: \.records, id: 2, action: \.record)
    try await first.send(.record(2, .play))
    try await first.send(.move(2, to: 0))
    try await first.send(.move(3, to: 0))
    let answer = try await red.send(.judge(.wild))
    #expect(red.state?.mood == .wild && red.state?.isPlaying == true)
    try await wait(for: second.observe(\.records)) { $0.ids.elementsEqual([3, 2, 1]) }
    for mirror in [first, second] {
      try await mirror.subscription.reached(revision: answer.revision)
    }
    #expect(second.state == first.state)
    #expect(try await playing(first) == ["record.play"])
    try await first.send(.take(3))
    #expect(try await playing(first) == ["record.play"])
    try await first.send(.silence)
    #expect(try await playing(first) == [])
    try await first.send(.record(2, .play))
    #expect(try await playing(first) == ["record.play"])
    try await first.send(.take(2))
    #expect(try await playing(first) == [] && first.records.ids.elementsEqual([1]))
  }

  @Test func `Scope: two children of one feature do not disturb each other's rows`() async throws {
    let mirror = try await connect()
    for crate in [Shelf.Action.left, Shelf.Action.right] {
      try await mirror.send(crate(.put("Blue")))
      try await mirror.send(crate(.record(1, .play)))
    }
    #expect(try await playing(mirror) == ["left.record.play", "right.record.play"])
    try await mirror.send(.left(.silence))
    #expect(try await playing(mirror) == ["right.record.play"])
    try await mirror.send(.left(.record(1, .play)))
    #expect(try await playing(mirror) == ["right.record.play", "left.record.play"])
    try await mirror.send(.left(.take(1)))
    #expect(try await playing(mirror) == ["right.record.play"])
    #expect(mirror.left.records.isEmpty && mirror.right.records[id: 1]?.isPlaying == true)
  }

  @Test func `createSelector: a filter follows in its order`() async throws {
    let (first, second) = (try await connect(), try await connect())
    for title in ["Blue", "Red", "Green"] { try await first.send(.put(title)) }
    for id in [1, 3] { try await first.send(.record(id, .judge(.wild))) }
    try await wait(for: second.observe(Shelf.State.wild)) { $0.ids.elementsEqual([1, 3]) }
    try await first.send(.move(3, to: 0))
    try await wait(for: second.observe(Shelf.State.wild)) { $0.ids.elementsEqual([3, 1]) }
  }

  @Test func `applyMiddleware: a middleware refuses by the state`() async throws {
    let mirror = try await connect()
    try await mirror.send(.set(.volume(11)))
    try await mirror.send(.put("Blue"))
    let refused = await rejection { try await mirror.send(.set(.volume(12))) }
    #expect(refused == Rejection(.refused, "the neighbours sleep"))
    #expect(mirror.volume == 11)
  }

  @Test func `cancel(id:): the parent ends what its rows have begun`() async throws {
    let mirror = try await connect()
    for title in ["Blue", "Red"] { try await mirror.send(.put(title)) }
    for id in [1, 2] { try await mirror.send(.record(id, .play)) }
    #expect(try await playing(mirror).count == 2)
    try await mirror.send(.silence)
    #expect(try await playing(mirror) == [] && mirror.records.allSatisfy { !$0.isPlaying })
  }

  @Test func `Task.cancel(id:): an effect ends another one of its feature`() async throws {
    let mirror = try await connect()
    for title in ["Blue", "Red"] { try await mirror.send(.put(title)) }
    try await mirror.send(.left(.put("Green")))
    try await mirror.send(.left(.record(1, .play)))
    for id in [1, 2] { try await mirror.send(.record(id, .play)) }
    try await mirror.send(.record(1, .stop))
    // The effect that ends it may run after the answer.
    while try await playing(mirror).count == 3 {}
    #expect(try await playing(mirror) == ["left.record.play", "record.play"])
    #expect(mirror.records.map(\.isPlaying) == [false, true])
    try await mirror.send(.take(2))
    #expect(try await playing(mirror) == ["left.record.play"])
  }

  @Test func `05-Recursion: a feature whose rows are of its own type`() async throws {
    let mirror = try await connect()
    try await mirror.send(.box(.add("tray")))
    try await mirror.send(.box(.part(1, .add("cup"))))
    try await mirror.send(.box(.part(1, .part(1, .toggle))))
    #expect(mirror.box.parts[1]?.parts[1]?.isDone == true)
    #expect(mirror.box.parts[1]?.parts[1]?.title == "cup")
  }

  @Test func `onStart: children that are there are started with their daemon, once`()
    async throws
  {
    let mirror = try await connect()
    for title in ["Blue", "Red"] { try await mirror.send(.put(title)) }
    try await mirror.send(.right(.put("Green")))
    try await mirror.send(.beginNote)
    try await mirror.send(.screen(.open))
    func starts() -> [Int?] {
      mirror.records.map(\.starts) + mirror.right.records.map(\.starts)
        + [mirror.note?.starts, mirror.screen.note?.starts, mirror.room.lamp.starts]
    }
    #expect(starts() == [0, 0, 0, 0, 0, 1])
    for restarts in 1...2 {
      try shelf.restart()
      try await wait(for: mirror.observe(\.room.lamp.starts)) { $0 > restarts }
      // They are reduced before anything else, so that their changes come before this answer.
      try await mirror.send(.set(.owner("Ann")))
      #expect(
        starts() == [restarts, restarts, restarts, restarts, restarts, restarts + 1])
    }
  }

  @Test func `onStart, ifLet, ifCaseLet: children live as their states do`() async throws {
    let mirror = try await connect()
    #expect(mirror.room.lamp.starts == 1)
    try await mirror.send(.note(.write("nothing is there")))
    #expect(mirror.note == nil)
    try await mirror.send(.beginNote)
    try await mirror.send(.note(.write("loud")))
    #expect(mirror.note?.text == "loud")
    try await mirror.send(.endNote)
    try await mirror.send(.beginNote)
    #expect(mirror.note?.text == "")
    try await mirror.send(.screen(.open))
    try await mirror.send(.screen(.sleeve(.write("soft"))))
    #expect(mirror.screen.note?.text == "soft")
    try shelf.restart()
    try await wait(for: mirror.observe(\.room.lamp.starts)) { $0 == 2 }
    #expect(mirror.note != nil)
  }

  @Test func `scope: a client connects to a part, and to a row`() async throws {
    let whole = try await connect()
    try await whole.send(.put("Blue"))
    let lamp = try await Mirror.connect(
      to: \.room.lamp, action: \.room.lamp, shelf.options)
    try await lamp.send(.toggle)
    #expect(lamp.isOn && lamp.starts == 1)
    let row = try await Mirror.connect(
      to: \.records, id: 1, action: \.record, shelf.options)
    try await row.send(.judge(.calm))
    #expect(row.state?.mood == .calm)
    try await whole.send(.set(.owner("Ann")))
    #expect(whole.room.lamp.isOn && whole.records[id: 1]?.mood == .calm)
    // Nothing of the rest has come, which would be before the answer to a ping: only a snapshot of each
    // part, and a patch.
    for connection in [lamp.connection, row.connection] { _ = try await connection.ping() }
    #expect(lamp.subscription.counters.patches == 1 && row.subscription.counters.patches == 1)
  }

  @Test func `BindableAction: fields are set without an action each`() async throws {
    let mirror = try await connect()
    try await mirror.send(.set(\.volume, 7))
    try await mirror.send(.set(\.owner, "Ann"))
    #expect(mirror.volume == 7 && mirror.owner == "Ann" && mirror.turns == 1)
    try await mirror.send(.set(\.volume, 7))
    #expect(mirror.turns == 1)
  }

  @Test func `createAsyncThunk: a request is done, fails, is cancelled and tried again`()
    async throws
  {
    let mirror = try await connect()
    try await mirror.send(.review(.load))
    try await wait(for: mirror.observe(\.review)) { $0.phase == .loaded }
    // What the daemon gave to this feature alone.
    #expect(mirror.review.value == "the local paper heard it at 5")
    #expect(mirror.reviewer == "the local paper")
    try await mirror.send(.set(\.volume, 0))
    try await mirror.send(.review(.load))
    try await wait(for: mirror.observe(\.review)) { $0.failure == "too quiet" }
    try await mirror.send(.set(\.volume, 1))
    try await mirror.send(.review(.retry))
    #expect(mirror.review.isLoading)
    try await mirror.send(.review(.cancel))
    #expect(!mirror.review.isLoading && mirror.review.phase == .failed)
    try await mirror.send(.set(\.volume, 2))
    try await mirror.send(.review(.retry))
    try await wait(for: mirror.observe(\.review)) { $0.phase == .loaded }
    #expect(mirror.review.value == "the local paper heard it at 2")
    let forged = await rejection { try await mirror.send(.review(.loaded("forged"))) }
    #expect(forged?.code == .denied)
  }

  @Test func `ReactorKit transform(action:): a stream of actions is transformed`() async throws {
    let mirror = try await connect()
    for text in ["a", "a", "ab", "ab", "a"] {
      try await mirror.send(.search(.action(.type(text))))
    }
    try await wait(for: mirror.observe(\.search.texts)) { $0 == ["a", "ab", "a"] }
  }

  @Test func `ReactorKit transform(mutation:): a reactor's events are mutations`() async throws {
    let mirror = try await connect()
    for starts in 1...2 {
      try await wait(for: mirror.observe(\.search.starts)) { $0 >= starts }
      while try await !running("name", "events", mirror).isEmpty {}
      #expect(mirror.search.starts == starts)
      if starts == 1 { try shelf.restart() }
    }
  }

  @Test func `ReactorKit transform(state:): what is shown is not reduced next`() async throws {
    let whole = try await connect()
    let sides = try await Mirror.connect(to: \.sides.shown, action: \.sides, shelf.options)
    var seen = [sides.count]
    for _ in 0..<2 {
      try await sides.send(.action(.hear))
      try await wait(for: sides.observe(\.count)) { $0 > seen[seen.count - 1] }
      seen.append(sides.count)
    }
    #expect(seen == [0, 2, 4])
    try await wait(for: whole.observe(\.sides.shown.count)) { $0 == 4 }
    #expect(whole.sides.reduced.count == 2)
  }

  @Test func `presence: a listener is in the state as long as its client is connected`()
    async throws
  {
    let (first, second) = (try await connect(), try await connect())
    try await second.send(.listeners(.enter("Ann")))
    try await wait(for: first.observe(\.listeners)) { $0.map(\.entry) == ["Ann"] }
    await second.connection.finish()
    try await wait(for: first.observe(\.listeners)) { $0.isEmpty }
  }

  @Test func `optimistic: what is sent shows at once, and what is refused is told`() async throws {
    let mirror = try await Mirror.connect(optimistic: Shelf(), shelf.options)
    try await mirror.send(.put("Blue"), .optimistic)
    var failed = mirror.failedPosts.makeAsyncIterator()
    mirror.post(.put("Red"), .optimistic)
    mirror.post(.move(2, to: 0), .optimistic)
    mirror.post(.set(.volume(12)), .optimistic)
    // The reducer runs here, too; the neighbours are asked in the daemon.
    #expect(mirror.records.ids.elementsEqual([2, 1]))
    let refused = try #require(await failed.next())
    #expect(refused.action == .set(.volume(12)))
    #expect(mirror.volume == 5 && mirror.pending.isEmpty)
    #expect(mirror.confirmed == mirror.state)
    let volume = mirror.binding(\.volume)
    volume.wrappedValue = 3
    #expect(volume.wrappedValue == 3)
    try await mirror.send(.set(\.owner, "Ann"))
    #expect(mirror.confirmed.volume == 3 && mirror.confirmed.turns == 1)
  }

  @Test func `optimistic: a mirror of a row alone shows at once what the row is sent`() async throws
  {
    let whole = try await connect()
    for title in ["Blue", "Red"] { try await whole.send(.put(title)) }
    let red = try await Mirror.connect(
      to: \.records, id: 2, action: \.record, optimistic: Player(), shelf.options)
    red.post(.play, .optimistic)
    red.post(.judge(.wild), .optimistic)
    #expect(red.state?.isPlaying == true && red.state?.mood == .wild)
    // Its effect runs in the daemon, where it is the row's.
    try await red.send(.judge(.calm), .optimistic)
    #expect(red.confirmed?.isPlaying == true && red.confirmed?.mood == .calm && red.pending.isEmpty)
    #expect(try await playing(whole) == ["record.play"])
    try await wait(for: whole.observe(\.records)) { $0[id: 2]?.mood == .calm }
  }

  @Test func `@Fallback: an older client sees what it does not know as that case`() async throws {
    let (new, old) = (
      try await connect(), try await MirrorStore<OldShelf>.connect(shelf.options)
    )
    try await old.send(.put("Blue"))
    try await new.send(.put("Red"))
    try await new.send(.record(1, .judge(.wild)))
    try await new.send(.record(2, .judge(.calm)))
    try await wait(for: old.observe(\.records)) { $0.map(\.mood) == [.unknown, .calm] }
    #expect(old.records.map(\.title) == ["Blue", "Red"])
  }
}
