import Lockstep
import LockstepStore
import LockstepTesting
import ShelfFeature
import Synchronization
import Testing

extension Store {
  /// The effects that play a record, in the order of their start.
  fileprivate var playing: [RunningEffect] {
    effects.filter { $0.keys.contains(EffectKey("play")) }
  }
}

/// What a feature is made of, in a store of this process.
@Suite(.timeLimit(.minutes(2))) struct StoreTests {
  private let clock = TestClock()

  private func makeStore(_ state: Shelf.State = Shelf.State()) -> Store<Shelf> {
    Store(initialState: state) {
      Shelf()
    } withDependencies: {
      $0.clock = clock
    }
  }

  /// Waits for what effects lead to; the time limit of a test ends it.
  private func eventually(_ condition: () -> Bool) async {
    while !condition() && !Task.isCancelled { await Task.yield() }
    #expect(condition())
  }

  /// Waits until the effects of so many records wait for their hour.
  private func areHeard(_ count: Int) async { await eventually { clock.sleepers == count } }

  @Test func `applyMiddleware: a middleware refuses by the state, before the reducer`() {
    let reduced = Mutex<[String]>([])
    let store = Store(initialState: Shelf.State(), middleware: [Neighbour()]) {
      Shelf().logging { action, _ in reduced.withLock { $0.append(action.name) } }
    }
    store.send(.set(.volume(11)))
    store.send(.put("Blue"))
    let before = store.state
    let refused = store.send(.set(.volume(12)))
    #expect(refused.reduction == .rejected(Rejection(.refused, "the neighbours sleep")))
    #expect(store.state == before && before.volume == 11 && before.turns == 1)
    #expect(reduced.withLock { $0 } == ["room.lamp.began", "set.volume", "put"])
    store.send(.set(.volume(10)))
    #expect(store.volume == 10)
  }

  @Test func `testNavigation_cancelID_parentCancellation: the parent ends effects of its children`()
    async
  {
    let store = makeStore()
    store.send(.put("Blue"))
    store.send(.put("Red"))
    store.send(.left(.put("Green")))
    let plays = [
      store.send(.record(1, .play)), store.send(.record(2, .play)),
      store.send(.left(.record(1, .play))),
    ]
    await areHeard(3)
    #expect(store.playing.count == 3)
    store.send(.silence)
    #expect(store.effects.isEmpty)
    for play in plays { await play.finish() }
    await clock.advance(by: .seconds(3600))
    #expect(clock.sleepers == 0 && store.log.newest?.name == "silence")
    #expect(
      store.records.allSatisfy { !$0.isPlaying } && store.left.records[id: 1]?.isPlaying == false)
  }

  @Test func `testDependency: what is set on a reducer reaches it and its effect`() async {
    let store = Store(initialState: Shelf.State()) {
      Shelf().dependency(\.critic, Critic(name: "Ann") { "Ann heard it at \($0)" })
    } withDependencies: {
      $0.critic = Critic(name: "another") { _ in "another heard it" }
    }
    await store.send(.review(.load)).finish()
    #expect(store.reviewer == "Ann" && store.review == .loaded("Ann heard it at 5"))
  }

  @Test func `ForEachReducerTests: a row's effect runs on when others come before it`() async {
    let store = makeStore()
    for title in ["Blue", "Red", "Green"] { store.send(.put(title)) }
    let play = store.send(.record(2, .play))
    await areHeard(1)
    let begun = store.playing.map(\.id)
    store.send(.move(3, to: 0))
    store.send(.put("Pink"))
    store.send(.move(4, to: 0))
    store.send(.take(1))
    #expect(store.records.ids.elementsEqual([4, 3, 2]))
    #expect(begun.count == 1 && store.playing.map(\.id) == begun)
    // What it sends arrives at its row.
    #expect(store.records.filter(\.isPlaying).map(\.title) == ["Red"])
    await clock.advance(by: .seconds(3600))
    await play.finish()
    #expect(store.log.newest?.name == "record.played")
    #expect(store.records.allSatisfy { !$0.isPlaying } && store.effects.isEmpty)
  }

  @Test func `ForEachReducerTests: a row's effect ends with the row`() async {
    let store = makeStore()
    for title in ["Blue", "Red"] { store.send(.put(title)) }
    let plays = [store.send(.record(1, .play)), store.send(.record(2, .play))]
    await areHeard(2)
    let second = store.playing.last?.id
    store.send(.take(1))
    #expect(store.playing.map(\.id) == [second])
    await plays[0].finish()
    #expect(clock.sleepers == 1 && store.records.map(\.isPlaying) == [true])
  }

  @Test func `onStart: each child is started once, under logging, too`() {
    var state = Shelf.State()
    state.records = [.init(id: 1, title: "Blue"), .init(id: 2, title: "Red")]
    state.right.records = [.init(id: 1, title: "Green")]
    var note = Note.State()
    state.note = note
    state.screen = .sleeve(note)
    var started = state
    for id in [1, 2] { started.records[id: id]?.starts = 1 }
    started.right.records[id: 1]?.starts = 1
    note.starts = 1
    started.note = note
    started.screen = .sleeve(note)
    started.room.lamp.starts = 1
    for reducer in [Reduce(Shelf()), Reduce(Shelf().logging { _, _ in })] {
      let store = Store(initialState: state) { reducer }
      #expect(store.state == started)
      #expect(
        store.log.all.map(\.name).sorted() == [
          "note.began", "record.began", "record.began", "right.record.began", "room.lamp.began",
          "screen.sleeve.began",
        ])
    }
  }

  @Test func `Scope: two children of one feature do not disturb each other's rows`() async {
    let store = makeStore()
    for crate in [Shelf.Action.left, Shelf.Action.right] {
      store.send(crate(.put("Blue")))
      store.send(crate(.record(1, .play)))
    }
    await areHeard(2)
    #expect(store.playing.map(\.action) == ["left.record.play", "right.record.play"])
    let right = store.playing.last?.id
    // An effect of the row, the parent of the row, and the row's end: each ends the left one alone.
    for end in [Crate.Action.record(1, .stop), .silence, .take(1)] {
      await store.send(.left(end)).finish()
      #expect(store.playing.map(\.id) == [right], "\(end)")
      #expect(store.right.records[id: 1]?.isPlaying == true)
      let again = store.send(.left(.record(1, .play)))
      #expect(store.playing.count == (again.reduction == .unchanged ? 1 : 2))
    }
    await areHeard(1)
  }

  @Test func `ReactorKit transform(state:): what is shown is not reduced next`() async {
    let store = makeStore()
    for shown in [2, 4] {
      await store.send(.sides(.action(.hear))).finish()
      #expect(store.sides.shown.count == shown)
    }
    #expect(store.sides.reduced.count == 2)
  }

  @Test func `ReactorKit transform(mutation:): a reactor's events are mutations`() async {
    let store = Store(initialState: Shelf.State()) { Shelf(searches: true) }
    await eventually { !store.effects.contains { $0.name == "events" } }
    #expect(store.search.starts == 1 && store.search.texts == [])
    await store.send(.search(.action(.type("Blue")))).finish()
    await eventually { store.search.texts == ["Blue"] }
    #expect(store.search.starts == 1)
  }

  @Test func `Task.cancel(id:): an effect ends another one of its feature`() async {
    let store = makeStore()
    for title in ["Blue", "Red"] { store.send(.put(title)) }
    let plays = [store.send(.record(1, .play)), store.send(.record(2, .play))]
    await areHeard(2)
    let second = store.playing.last?.id
    await store.send(.record(1, .stop)).finish()
    #expect(store.playing.map(\.id) == [second])
    await plays[0].finish()
    #expect(clock.sleepers == 1 && store.records.map(\.isPlaying) == [false, true])
  }
}
