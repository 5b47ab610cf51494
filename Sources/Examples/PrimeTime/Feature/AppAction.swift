public import Lockstep

/// All actions of the app, by feature.
@Action
public enum AppAction: Equatable, Sendable {
  case counter(CounterAction)
  case primeModal(PrimeModalAction)
  case favoritePrimes(FavoritePrimeAction)
  case account(AccountAction)
}

@Action
public enum CounterAction: Equatable, Sendable {
  case decrTapped
  case incrTapped
}

@Action
public enum PrimeModalAction: Equatable, Sendable {
  case saveFavoritePrimeTapped
  case removeFavoritePrimeTapped
}

@Action
public enum FavoritePrimeAction: Equatable, Sendable {
  /// Delete the favorites at these indices of the list.
  case deleteFavoritePrime(Set<Int>)
}

@Action
public enum AccountAction: Equatable, Sendable {
  case login(User)
  case logout
}
