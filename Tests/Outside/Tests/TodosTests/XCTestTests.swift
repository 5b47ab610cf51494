import Lockstep
import LockstepTesting
import TodosFeature
import XCTest

/// The same under XCTest, which many projects still use.
final class MustFailXCTests: XCTestCase {
  func testMustFail() async {
    var state = Todos.State()
    state.todos[1] = Todo(id: 1, title: "milk")
    let store = TestStore(initialState: state) { Todos() }
    await store.send(.toggle(1)) { $0.todos[1]?.title = "bread" }
  }
}
