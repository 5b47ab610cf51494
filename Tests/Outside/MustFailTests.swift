import GroceriesFeature
import Lockstep
import LockstepTesting
import Testing

/// Scripts/test-outside runs these alone, and expects them to fail.
@Suite struct MustFailTests {
  @Test func mustFail() async {
    var state = Groceries.State()
    state.items[1] = Item(id: 1, title: "milk")
    let store = TestStore(initialState: state) { Groceries() }
    await store.send(.toggle(1)) { $0.items[1]?.title = "bread" }
  }
}
