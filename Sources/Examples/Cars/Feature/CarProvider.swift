public import Lockstep

/// Provides the list of cars.
public struct CarProvider: Sendable {
  public var cars: @Sendable () async throws -> [CarModel]

  public init(cars: @escaping @Sendable () async throws -> [CarModel]) { self.cars = cars }

  /// Always returns the same four cars.
  public static let builtIn = CarProvider {
    [
      CarModel(brand: "BMW", name: "520d"),
      CarModel(brand: "Mercedes-Benz", name: "E-class"),
      CarModel(brand: "KIA", name: "K5"),
      CarModel(brand: "HYUNDAE", name: "AVANTE"),
    ]
  }
}

private enum CarProviderKey: DependencyKey {
  static let liveValue = CarProvider.builtIn
}

extension DependencyValues {
  public var carProvider: CarProvider {
    get { self[CarProviderKey.self] }
    set { self[CarProviderKey.self] = newValue }
  }
}
