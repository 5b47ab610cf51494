import CarsFeature
import Synchronization

extension CarProvider {
  /// A provider that throws `times` times, and then returns this provider's cars.
  func failing(_ times: Int) -> CarProvider {
    let failuresLeft = Mutex(times)
    return CarProvider { [cars] in
      let fails = failuresLeft.withLock { left in
        defer { left -= 1 }
        return left > 0
      }
      if fails { throw NoCars() }
      return try await cars()
    }
  }
}

/// The provider has no cars.
struct NoCars: Error {}
