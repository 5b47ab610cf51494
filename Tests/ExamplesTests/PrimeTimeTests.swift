import Lockstep
import LockstepTesting
import PrimeTimeFeature
import Synchronization
import Testing

@Suite struct PrimeTimeTests {
  private func store(
    _ state: AppState = AppState(), _ change: (inout DependencyValues) -> Void = { _ in }
  ) -> TestStore<PrimeTime> {
    TestStore(initialState: state, reducer: { PrimeTime() }, withDependencies: change)
  }

  private func state(count: Int = 0, favorites: [Int] = []) -> AppState {
    var state = AppState()
    state.count = count
    state.favoritePrimes = favorites
    return state
  }

  private let start = Timestamp(nanoseconds: 0)

  @Test("TCA-03: the state begins empty")
  func beginning() {
    let state = AppState()
    #expect(state.count == 0 && state.favoritePrimes.isEmpty && state.activityFeed.isEmpty)
    #expect(state.loggedInUser == nil)
    #expect(AppState.initialValue == state)
  }

  @Test("TCA-09: the actions are nested by feature, and have names for people")
  func names() {
    #expect(AppAction.counter(.incrTapped).name == "counter.incrTapped")
    #expect(
      AppAction.primeModal(.saveFavoritePrimeTapped).name == "primeModal.saveFavoritePrimeTapped")
    #expect(
      AppAction.favoritePrimes(.deleteFavoritePrime([0])).name
        == "favoritePrimes.deleteFavoritePrime")
    #expect(AppAction.account(.logout).name == "account.logout")
  }

  @Test("TCA-11: incrTapped adds one, and decrTapped takes one away")
  func counting() async {
    let store = store()
    await store.send(.counter(.incrTapped)) { $0.count = 1 }
    await store.send(.counter(.incrTapped)) { $0.count = 2 }
    await store.send(.counter(.decrTapped)) { $0.count = 1 }
  }

  @Test("TCA-10: a reducer is a function of state and action, without a store")
  func pure() throws {
    var state = AppState()
    let effect = try PrimeTime().reduce(into: &state, action: .counter(.decrTapped))
    #expect(state.count == -1)
    #expect(effect == .none)
  }

  @Test("TCA-12: saving and removing a favorite is recorded in the activity feed, with its time")
  func savingAndRemoving() async {
    let store = store(state(count: 7))
    await store.clock.advance(by: .seconds(3))
    await store.send(.primeModal(.saveFavoritePrimeTapped)) {
      $0.favoritePrimes = [7]
      $0.activityFeed = [
        Activity(timestamp: start + .seconds(3), type: .addedFavoritePrime(7))
      ]
    }
    await store.clock.advance(by: .seconds(1))
    await store.send(.primeModal(.removeFavoritePrimeTapped)) {
      $0.favoritePrimes = []
      $0.activityFeed.append(
        Activity(timestamp: start + .seconds(4), type: .removedFavoritePrime(7)))
    }
  }

  @Test("TCA-12: the prime modal sees the counter's count, pulled back to one state")
  func composition() async {
    let store = store(state(favorites: [1, 2, 1]))
    await store.send(.counter(.incrTapped)) { $0.count = 1 }
    await store.send(.primeModal(.removeFavoritePrimeTapped)) {
      $0.favoritePrimes = [2]
      $0.activityFeed = [Activity(timestamp: start, type: .removedFavoritePrime(1))]
    }
  }

  @Test("TCA-12: the feed is written before the favorites are deleted, one line for each")
  func feedBeforeDeletion() async {
    let store = store(state(favorites: [2, 3, 5, 7]))
    await store.send(.favoritePrimes(.deleteFavoritePrime([0, 2, 3]))) {
      $0.favoritePrimes = [3]
      $0.activityFeed = [2, 5, 7].map {
        Activity(timestamp: start, type: .removedFavoritePrime($0))
      }
    }
  }

  @Test("3.3 F: favorites are deleted in descending order, so that none is missed")
  func descending() async {
    let store = store(state(favorites: [2, 3, 5]))
    store.exhaustivity = .off
    await store.send(.favoritePrimes(.deleteFavoritePrime([0, 1]))) { $0.favoritePrimes = [5] }
  }

  @Test("deleting an absent favorite is rejected, and its line in the feed is rolled back")
  func rejection() async {
    let store = store(state(favorites: [2, 3]))
    await store.send(
      .favoritePrimes(.deleteFavoritePrime([0, 9])),
      rejected: Rejection(.refused, "there is no favorite prime at 9"))
    #expect(store.state.activityFeed.isEmpty && store.state.favoritePrimes == [2, 3])
  }

  @Test("TCA-12: logging wraps everything, and logs the state after the action")
  func logging() async {
    let lines = Lines()
    let store = store(state(count: 2)) { $0.writeLine = { lines.add($0) } }
    store.exhaustivity = .off
    await store.send(.counter(.incrTapped))
    await store.send(.primeModal(.saveFavoritePrimeTapped))
    #expect(
      lines.all == [
        "counter.incrTapped: count 3, favorites []",
        "primeModal.saveFavoritePrimeTapped: count 3, favorites [3]",
      ])
  }

  @Test("TCA-03: login and logout set the user")
  func account() async {
    let blob = User(id: 1, name: "Blob", bio: "Counts.")
    let store = store()
    await store.send(.account(.login(blob))) { $0.loggedInUser = blob }
    await store.send(.account(.logout)) { $0.loggedInUser = nil }
    await store.send(.account(.logout))
  }
}

/// Lines written by code on any thread.
final class Lines: Sendable {
  private let lines = Mutex<[String]>([])

  var all: [String] { lines.withLock { $0 } }

  func add(_ line: String) { lines.withLock { $0.append(line) } }
}
