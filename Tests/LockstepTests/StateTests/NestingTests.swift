import Lockstep
import Testing

// The shapes of the architecture documents: one struct with the states of its parts nested in it,
// and one enumeration with their actions.

@ObservableState struct WholeState: Equatable {
  var tabState = TabState()
  var navigationState = NavigationState()

  @ObservableState struct TabState: Equatable {
    var selected = "home"
  }

  @ObservableState struct NavigationState: Equatable {
    var routes: [String] = []
    var login = LoginState()

    @ObservableState struct LoginState: Equatable {
      var user: String?
      var tries = 3
    }
  }
}

@Action enum WholeAction: Equatable {
  case tabAction(TabAction)
  case navigationAction(NavigationAction)

  @Action enum TabAction: Equatable { case select(String) }

  @Action enum NavigationAction: Equatable {
    case push(String), pop
    case loginAction(LoginAction)

    @Action enum LoginAction: Equatable { case login(user: String), logout }
  }
}

/// One reducer over nested patterns.
private struct Whole: Reducer {
  func reduce(into state: inout WholeState, action: WholeAction) -> Effect<WholeAction> {
    switch action {
    case .tabAction(.select(let tab)): state.tabState.selected = tab
    case .navigationAction(.push(let route)): state.navigationState.routes.append(route)
    case .navigationAction(.pop): _ = state.navigationState.routes.popLast()
    case .navigationAction(.loginAction(.login(let user))):
      state.navigationState.login.user = user
    case .navigationAction(.loginAction(.logout)):
      state.navigationState.login = WholeState.NavigationState.LoginState()
    }
    return .none
  }
}

@Suite struct NestingTests {
  @Test("RDX-09: the states of parts are nested in the one state, and all of it has defaults")
  func state() throws {
    let state = try #require(WholeState.initialValue)
    #expect(state == WholeState() && state.navigationState.login.tries == 3)
    #expect(WholeState.path(of: \.navigationState.login.user) == [1, 1, 0])
    #expect(WholeState.fields.map(\.name) == ["tabState", "navigationState"])
    var schema = SchemaBuilder()
    #expect(WholeState.schemaKind(in: &schema) == .type("WholeState"))
    #expect(
      Set(schema.types.keys) == [
        "WholeState", "WholeState.TabState", "WholeState.NavigationState",
        "WholeState.NavigationState.LoginState",
      ])
  }

  @Test("RDX-09: the patch of a change deep inside has the size of the change")
  func patch() throws {
    let old = WholeState()
    var new = old
    new.navigationState.login.user = "ada"
    #expect(hex(difference(from: old, to: new)) == "a101a101a10063616461")
    try expectLaw(from: old, to: new)
    #expect(new.changedFields(from: old) == [1])
  }

  @Test("RDX-10: the actions of parts are nested in the one action, and named with their parts")
  func action() throws {
    let actions: [(WholeAction, String)] = [
      (.tabAction(.select("search")), "tabAction.select"),
      (.navigationAction(.push("books")), "navigationAction.push"),
      (.navigationAction(.loginAction(.login(user: "ada"))), "navigationAction.loginAction.login"),
      (.navigationAction(.pop), "navigationAction.pop"),
      (.navigationAction(.loginAction(.logout)), "navigationAction.loginAction.logout"),
    ]
    var state = WholeState()
    var states: [WholeState] = []
    for (action, name) in actions {
      #expect(action.name == name)
      #expect(try decoded(WholeAction.self, bytes(action)) == action)
      #expect(Whole().reduce(into: &state, action: action) == .none)
      states.append(state)
    }
    #expect(states[0].tabState.selected == "search")
    #expect(states[1].navigationState.routes == ["books"])
    #expect(states[2].navigationState.login.user == "ada")
    #expect(states[3].navigationState.routes == [] && states[4].navigationState.login.user == nil)
    var schema = SchemaBuilder()
    #expect(WholeAction.schemaKind(in: &schema) == .type("WholeAction"))
    #expect(schema.types["WholeAction.NavigationAction.LoginAction"] != nil)
  }
}
