import GroceriesFeature
import Lockstep
import LockstepTesting
import XCTest

/// The same under XCTest, which many projects still use.
final class MustFailXCTests: XCTestCase {
  func testMustFail() async {
    var state = Groceries.State()
    state.items[1] = Item(id: 1, title: "milk")
    let store = TestStore(initialState: state) { Groceries() }
    await store.send(.toggle(1)) { $0.items[1]?.title = "bread" }
  }
}
