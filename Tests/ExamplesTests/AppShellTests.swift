import AppShellFeature
import Lockstep
import LockstepTesting
import Synchronization
import Testing

@Suite struct AppShellTests {
  private func store(
    _ state: AppState = AppState(), _ middleware: [any Middleware<AppState, AppAction>] = [],
    _ change: (inout DependencyValues) -> Void = { _ in }
  ) -> TestStore<AppShell> {
    TestStore(
      initialState: state, middleware: middleware, reducer: { AppShell() },
      withDependencies: change)
  }

  // MARK: State, actions, reducer

  @Test("RDX-09: every part of the one state has a default")
  func defaults() throws {
    let state = try #require(AppState.initialValue)
    #expect(state == AppState())
    #expect(state.summary == "tab home, route /, nobody")
  }

  @Test("RDX-20: each part of the state has its actions, and each action its part")
  func bothSides() async {
    let store = store()
    await store.send(.tabAction(.select(.search))) { $0.tabState.selected = .search }
    await store.send(.navigationAction(.push("books"))) { $0.navigationState.routes = ["books"] }
    await store.send(.loginAction(.login("ada"))) {
      $0.loginState.user = "ada"
      $0.loginState.isGreeting = true
    }
  }

  @Test("RDX-10: an action of a part is named with that part")
  func names() {
    #expect(AppAction.tabAction(.select(.home)).name == "tabAction.select")
    #expect(AppAction.loginAction(.logout).name == "loginAction.logout")
  }

  @Test("RDX-02: routes are pushed and popped, and popping the root is no change")
  func routes() async {
    let store = store()
    await store.send(.navigationAction(.push("books"))) { $0.navigationState.routes = ["books"] }
    await store.send(.navigationAction(.push("7"))) { $0.navigationState.routes = ["books", "7"] }
    await store.send(.navigationAction(.pop)) { $0.navigationState.routes = ["books"] }
    await store.send(.navigationAction(.popToRoot)) { $0.navigationState.routes = [] }
    await store.send(.navigationAction(.pop))
  }

  @Test("RDX-11: the reducer is pure: equal arguments give equal results, and no effect")
  func pure() throws {
    var (first, second) = (AppState(), AppState())
    let effect = try AppShell().reduce(into: &first, action: .tabAction(.select(.profile)))
    _ = try AppShell().reduce(into: &second, action: .tabAction(.select(.profile)))
    #expect(first == second && first.tabState.selected == .profile)
    #expect(effect == .none)
  }

  @Test("logout and eviction restore the defaults")
  func leaving() async {
    let store = store()
    for leave in [LoginAction.logout, .evict] {
      await store.send(.loginAction(.login("ada"))) {
        $0.loginState.user = "ada"
        $0.loginState.isGreeting = true
      }
      await store.send(.loginAction(leave)) { $0.loginState = LoginState() }
    }
  }

  // MARK: Middleware

  @Test("RDX-16: middleware runs in the order of the array, before and after the reducer")
  func order() async {
    let lines = Lines()
    let logs = [StateLoggingMiddleware(name: "first"), StateLoggingMiddleware(name: "second")]
    let store = store(AppState(), logs) { $0.writeLine = { lines.add($0) } }
    await store.send(.tabAction(.select(.search))) { $0.tabState.selected = .search }
    #expect(
      lines.all == [
        "first: tabAction.select, from the daemon", "second: tabAction.select, from the daemon",
        "first: tabAction.select led to tab search, route /, nobody",
        "second: tabAction.select led to tab search, route /, nobody",
      ])
  }

  @Test("RDX-20: middleware changes an action before the reducer")
  func changing() async {
    let store = store(AppState(), [UserNameMiddleware()])
    await store.send(.loginAction(.login("  ada l. "))) {
      $0.loginState.user = "ada l."
      $0.loginState.isGreeting = true
    }
  }

  @Test("RDX-07: an action that middleware swallows is not reduced")
  func swallowing() async {
    let lines = Lines()
    let store = store(AppState(), [UserNameMiddleware(), StateLoggingMiddleware()]) {
      $0.writeLine = { lines.add($0) }
    }
    await store.send(.loginAction(.login("   ")))
    #expect(store.log.newest?.outcome == .swallowed)
    #expect(lines.all.isEmpty)
  }

  @Test("RDX-12: middleware yields a stream of further actions, a second after the login")
  func greeting() async {
    var state = AppState()
    state.tabState.selected = .profile
    state.navigationState.routes = ["settings"]
    let store = store(state, [GreetingMiddleware()])
    await store.send(.loginAction(.login("ada"))) {
      $0.loginState.user = "ada"
      $0.loginState.isGreeting = true
    }
    await store.clock.advance(by: .milliseconds(999))
    #expect(store.log.newest?.name == "loginAction.login")
    await store.clock.advance(by: .milliseconds(1))
    await store.receive(.loginAction(.greeted)) { $0.loginState.isGreeting = false }
    await store.receive(.navigationAction(.popToRoot)) { $0.navigationState.routes = [] }
    await store.receive(.tabAction(.select(.home))) { $0.tabState.selected = .home }
    await store.finish()

    let records = store.log.all
    #expect(records.map(\.sequence) == [1, 2, 3, 4])
    #expect(records.dropFirst().allSatisfy { $0.cause.parent == 1 })
    #expect(records.last?.cause.origin.description.contains("greet") == true)
  }

  @Test("RDX-12: a logout cancels a pending greeting")
  func noGreeting() async {
    let store = store(AppState(), [GreetingMiddleware()])
    await store.send(.loginAction(.login("ada"))) {
      $0.loginState.user = "ada"
      $0.loginState.isGreeting = true
    }
    await store.send(.loginAction(.logout)) { $0.loginState = LoginState() }
    await store.clock.advance(by: .seconds(2))
    await store.finish()
  }

  @Test("RDX-20: an effect of middleware leaves the table when it ends")
  func forgotten() async {
    let store = store(AppState(), [GreetingMiddleware()])
    store.exhaustivity = .off
    for _ in 0..<10 { await store.send(.loginAction(.login("ada"))) }
    #expect(store.runningEffects.count == 1)
    await store.clock.advance(by: .seconds(1))
    #expect(store.runningEffects.isEmpty)
  }

  // MARK: Persistence

  @Test("RDX-19: at launch the stored state is loaded, and replaces the state")
  func loading() async {
    var stored = AppState()
    stored.tabState.selected = .profile
    let state = stored
    let store = store(AppState(), [PersistenceMiddleware()]) {
      $0.storage = Storage(load: { state }, save: { _ in Issue.record("nothing is to be saved") })
    }
    await store.send(.launch)
    await store.receive(.restore(stored)) { $0 = stored }
    await store.finish()
  }

  @Test("RDX-19: nothing stored, nothing restored")
  func loadingNothing() async {
    let store = store(AppState(), [PersistenceMiddleware()])
    await store.send(.launch)
    await store.finish()
  }

  @Test("RDX-19: every change is saved, without ephemeral fields; other actions save nothing")
  func saving() async {
    let saved = Mutex<[AppState]>([])
    let store = store(AppState(), [PersistenceMiddleware()]) {
      $0.storage = Storage(load: { nil }, save: { state in saved.withLock { $0.append(state) } })
    }
    store.exhaustivity = .off
    await store.send(.loginAction(.login("ada"))) { $0.loginState.isGreeting = true }
    await store.send(.tabAction(.select(.home)))
    await store.send(.tabAction(.select(.search)))
    await store.finish()
    let states = saved.withLock { $0 }
    #expect(
      states.map(\.summary) == ["tab home, route /, user ada", "tab search, route /, user ada"])
    #expect(states.allSatisfy { !$0.loginState.isGreeting })
  }

  // MARK: Authorization

  @Test(
    "only the administrator may evict and crash, and no user may restore", arguments: [0, 1000])
  func permissions(user: UInt64) {
    let isAdministrator = user == 0
    func may(_ action: AppAction) -> Bool { action.mayBeSent(by: user, administrator: 0) }
    #expect(may(.loginAction(.evict)) == isAdministrator)
    #expect(may(.crash) == isAdministrator)
    #expect(!may(.launch) && !may(.restore(AppState())))
    #expect(may(.tabAction(.select(.home))) && may(.loginAction(.login("ada"))))
    #expect(may(.navigationAction(.pop)) && may(.loginAction(.logout)))
  }
}
