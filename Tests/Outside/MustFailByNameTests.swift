import GroceriesFeature
import Lockstep
import LockstepTesting
import Testing

/// Scripts/test-outside runs these alone, and expects them to fail: the live backend is used.
@Suite struct MustFailByNameTests {
  @Test func mustFail() async {
    let store = TestStore(initialState: Groceries.State()) { Groceries() }
    store.exhaustivity = .off
    await store.send(.load)
    await store.finish()
  }
}
