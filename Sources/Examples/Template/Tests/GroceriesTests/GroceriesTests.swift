import GroceriesFeature
import Lockstep
import LockstepTesting
import Testing

@Suite struct GroceriesTests {
  private static let milk = Item(id: 1, title: "milk")

  @Test func `items are loaded`() async {
    let store = TestStore(initialState: Groceries.State()) {
      Groceries()
    } withDependencies: {
      $0.backend = Backend { [Self.milk] }
    }
    await store.send(.load) { $0.isLoading = true }
    await store.receive(\.loaded, [Self.milk]) {
      $0.isLoading = false
      $0.items[1] = Self.milk
    }
    await store.send(.toggle(1)) { $0.items[1]?.isDone = true }
    await store.finish()
  }

  @Test func `a backend that fails leaves its reason`() async {
    let store = TestStore(initialState: Groceries.State()) {
      Groceries()
    } withDependencies: {
      $0.backend = Backend { throw Offline() }
    }
    await store.send(.load) { $0.isLoading = true }
    await store.receive(\.failed) {
      $0.isLoading = false
      $0.error = "Offline()"
    }
    await store.finish()
  }

  /// A daemon and two mirrors in one process, over a network that splits, delays and cuts.
  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func `every mirror gets what was loaded`(seed: UInt64) throws {
    let store = try SyncTestStore(initialState: Groceries.State(), seed: seed, mirrors: 2) {
      Groceries()
    } withDependencies: {
      $0.backend = Backend { [Self.milk] }
    }
    let load = try store.send(.load, from: 0)
    try store.run(steps: 200)
    try store.settle()
    #expect(store.outcome(of: load) == .reduced)
    #expect(store.state.items[1] == Self.milk)
    #expect(store.mirror(1).state == store.state)
  }
}

private struct Offline: Error {}
