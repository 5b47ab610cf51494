import Lockstep
import LockstepTesting
import ShelfFeature
import Testing

@Suite struct PartsTests {
  @Test func `a part of a part is done`() async {
    var state = Part(id: 1, title: "bread")
    state.parts[1] = Part(id: 1, title: "flour")
    state.parts[1]?.parts[1] = Part(id: 1, title: "mill")
    let store = TestStore(initialState: state) { Parts() }
    await store.send(.part(1, .part(1, .toggle))) { $0.parts[1]?.parts[1]?.isDone = true }
    await store.send(.part(1, .part(1, .add("stone")))) {
      $0.parts[1]?.parts[1]?.parts[1] = Part(id: 1, title: "stone")
    }
    await store.finish()
  }

  @Test func `mirrors have it too`() throws {
    let store = try SyncTestStore(initialState: Part(id: 1, title: "bread"), seed: 1) { Parts() }
    try store.send(.add("flour"), from: 0)
    try store.send(.part(1, .add("mill")), from: 0)
    let last = try store.send(.part(1, .part(1, .toggle)), from: 0)
    try store.settle()
    #expect(store.outcome(of: last) == .reduced)
    #expect(store.mirror(1).state?.parts[1]?.parts[1]?.isDone == true)
    #expect(store.mirror(1).state == store.state)
  }
}
