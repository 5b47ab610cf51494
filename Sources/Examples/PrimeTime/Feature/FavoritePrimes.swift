import Lockstep

/// The list of favorites, from which entries can be deleted.
struct FavoritePrimes: Reducer {
  func reduce(
    into primes: inout [Int], action: FavoritePrimeAction
  ) throws(Rejection) -> Effect<FavoritePrimeAction> {
    switch action {
    case .deleteFavoritePrime(let places):
      // From the end, so that no deletion moves an entry that is still to be deleted.
      for place in places.sorted(by: >) {
        guard primes.indices.contains(place) else {
          throw Rejection(.refused, "there is no favorite prime at \(place)")
        }
        primes.remove(at: place)
      }
    }
    return .none
  }
}
