import Lockstep

/// Adds the current number to the favorites, or removes it from them.
struct PrimeModal: Reducer {
  @ObservableState
  struct State: Equatable {
    var count: Int
    var favoritePrimes: [Int]
  }

  func reduce(into state: inout State, action: PrimeModalAction) -> Effect<PrimeModalAction> {
    switch action {
    case .saveFavoritePrimeTapped: state.favoritePrimes.append(state.count)
    case .removeFavoritePrimeTapped: state.favoritePrimes.removeAll { $0 == state.count }
    }
    return .none
  }
}

extension AppState {
  /// The two parts of the state that the prime modal uses.
  var primeModal: PrimeModal.State {
    get { PrimeModal.State(count: count, favoritePrimes: favoritePrimes) }
    set {
      count = newValue.count
      favoritePrimes = newValue.favoritePrimes
    }
  }
}
