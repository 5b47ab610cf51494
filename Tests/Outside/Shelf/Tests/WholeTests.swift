import Lockstep
import LockstepTesting
import ShelfFeature
import Testing

@Suite struct WholeTests {
  @Test func `in a test store`() async {
    let store = TestStore(initialState: Shelf.State()) {
      Shelf()
    } withDependencies: {
      $0.critic = Critic { "heard at \($0)" }
    }
    await store.send(.put("Blue")) { $0.records = [.init(id: 1, title: "Blue")] }
    await store.send(.put("Red")) { $0.records.append(.init(id: 2, title: "Red")) }
    await store.send(.move(2, to: 0)) { $0.records.move(id: 2, to: 0) }
    await store.send(.record(2, .judge(.wild))) { $0.records[id: 2]?.mood = .wild }
    #expect(Shelf.State.wild(store.state).ids.elementsEqual([2]))
    await store.send(.set(.volume(7))) {
      $0.volume = 7
      $0.turns = 1
    }
    await store.send(.review(.load)) { $0.review.begin() }
    await store.receive(.review(.loaded("heard at 7"))) { $0.review = .loaded("heard at 7") }
    await store.finish()
  }

  @Test func `children that come and go, in a test store`() async {
    let store = TestStore(initialState: Shelf.State()) { Shelf() }
    await store.send(.beginNote) { $0.note = Note.State() }
    await store.send(.note(.write("loud"))) { $0.note?.text = "loud" }
    await store.send(.endNote) { $0.note = nil }
    await store.send(.screen(.open)) { $0.screen = .sleeve(Note.State()) }
    await store.send(.screen(.sleeve(.write("soft")))) {
      var note = Note.State()
      note.text = "soft"
      $0.screen = .sleeve(note)
    }
    await store.finish()
  }

  @Test func `a dependency of a part of the reducer, and of a test`() async {
    let local = TestStore(initialState: Shelf.State()) {
      Shelf().dependency(\.critic, Critic { _ in "local" })
    } withDependencies: {
      $0.critic = Critic { _ in "test" }
    }
    await local.send(.review(.load)) { $0.review.begin() }
    await local.receive(.review(.loaded("local"))) { $0.review = .loaded("local") }
    await local.finish()
    await withDependencies {
      $0.critic = Critic { _ in "around" }
    } operation: {
      let store = TestStore(initialState: Shelf.State()) { Shelf() }
      await store.send(.review(.load)) { $0.review.begin() }
      await store.receive(.review(.loaded("around"))) { $0.review = .loaded("around") }
      await store.finish()
    }
  }

  @Test func `the parent ends what its rows have begun`() async {
    var state = Shelf.State()
    state.records = [.init(id: 1, title: "Blue"), .init(id: 2, title: "Red")]
    let store = TestStore(initialState: state) { Shelf() }
    for id in [1, 2] {
      await store.send(.record(id, .play)) { $0.records[id: id]?.isPlaying = true }
    }
    #expect(store.runningEffects.count == 2)
    await store.send(.silence) {
      for id in [1, 2] { $0.records[id: id]?.isPlaying = false }
    }
    await store.finish()
  }

  @Test func `two children of one feature do not disturb each other's rows`() async {
    let store = TestStore(initialState: Shelf.State()) { Shelf() }
    await store.send(.left(.put("Blue"))) { $0.left.records = [.init(id: 1, title: "Blue")] }
    await store.send(.right(.put("Red"))) { $0.right.records = [.init(id: 1, title: "Red")] }
    await store.send(.left(.record(1, .play))) { $0.left.records[id: 1]?.isPlaying = true }
    await store.send(.right(.record(1, .play))) { $0.right.records[id: 1]?.isPlaying = true }
    #expect(store.runningEffects.map(\.action) == ["left.record.play", "right.record.play"])
    await store.send(.left(.silence)) { $0.left.records[id: 1]?.isPlaying = false }
    #expect(store.runningEffects.map(\.action) == ["right.record.play"])
    await store.send(.left(.take(1))) { $0.left.records = [] }
    #expect(store.runningEffects.map(\.action) == ["right.record.play"])
    await store.send(.silence) { $0.right.records[id: 1]?.isPlaying = false }
    await store.finish()
  }

  @Test(arguments: 1...3 as ClosedRange<UInt64>)
  func `nor do they in a daemon with mirrors`(seed: UInt64) throws {
    let store = try SyncTestStore(initialState: Shelf.State(), seed: seed) { Shelf() }
    for (client, crate) in [Shelf.Action.left, Shelf.Action.right].enumerated() {
      try store.send(crate(.put("Blue")), from: client)
      try store.send(crate(.record(1, .play)), from: client)
    }
    try store.settle()
    #expect(
      store.runningEffects.map(\.action).sorted() == ["left.record.play", "right.record.play"])
    try store.send(.left(.record(1, .stop)), from: 1)
    try store.settle()
    #expect(store.runningEffects.map(\.action) == ["right.record.play"])
    #expect(
      store.mirror(0).state?.left.records.map(\.isPlaying) == [false]
        && store.mirror(0).state?.right.records.map(\.isPlaying) == [true])
    try store.advance(by: .seconds(3600))
    try store.settle()
    #expect(store.runningEffects.isEmpty)
    #expect(store.mirror(1).state?.right.records.map(\.isPlaying) == [false])
  }

  @Test func `a middleware refuses by the state`() throws {
    let store = try SyncTestStore(
      initialState: Shelf.State(), middleware: [Neighbour()], seed: 3
    ) { Shelf() }
    let early = try store.send(.set(.volume(11)), from: 0)
    try store.send(.put("Blue"), from: 0)
    let late = try store.send(.set(.volume(12)), from: 0)
    try store.settle()
    #expect(store.outcome(of: early) == .reduced && store.state.volume == 11)
    #expect(
      store.outcome(of: late) == .rejected(Rejection(.refused, "the neighbours sleep")))
  }

  @Test(arguments: 1...10 as ClosedRange<UInt64>)
  func `in a daemon with mirrors`(seed: UInt64) throws {
    let store = try SyncTestStore(initialState: Shelf.State(), seed: seed) { Shelf() }
    for title in ["Blue", "Red", "Green"] { try store.send(.put(title), from: 0) }
    // Between clients nothing is in order: the second one waits until it sees what it moves.
    try store.settle()
    try store.send(.move(3, to: 0), from: 1)
    try store.send(.set(.volume(9)), from: 0)
    try store.send(.record(2, .judge(.calm)), from: 1)
    try store.settle()
    #expect(store.state.records.map(\.id) == [3, 1, 2])
    #expect(store.mirror(0).state == store.state && store.mirror(1).state == store.state)
    #expect(store.state.volume == 9 && store.state.records[id: 2]?.mood == .calm)
  }
}
