import Lockstep

extension Reducer where State == AppState, Action == AppAction {
  /// This reducer, with a feed of the changes of the favorites: a higher-order reducer.
  ///
  /// The feed is written first, while the favorites that an action deletes still exist. If this
  /// reducer rejects the action, the lines in the feed are rolled back with everything else.
  func activityFeed() -> some Reducer<AppState, AppAction> {
    CombineReducers {
      ActivityFeed()
      self
    }
  }
}

private struct ActivityFeed: Reducer {
  @Dependency(\.date) var date

  func reduce(into state: inout AppState, action: AppAction) -> Effect<AppAction> {
    for type in activities(of: action, in: state) {
      state.activityFeed.append(Activity(timestamp: date.now, type: type))
    }
    return .none
  }

  private func activities(of action: AppAction, in state: AppState) -> [ActivityType] {
    switch action {
    case .primeModal(.saveFavoritePrimeTapped):
      [.addedFavoritePrime(state.count)]
    case .primeModal(.removeFavoritePrimeTapped):
      [.removedFavoritePrime(state.count)]
    case .favoritePrimes(.deleteFavoritePrime(let places)):
      places.sorted().filter(state.favoritePrimes.indices.contains)
        .map { .removedFavoritePrime(state.favoritePrimes[$0]) }
    case .counter, .account:
      []
    }
  }
}
