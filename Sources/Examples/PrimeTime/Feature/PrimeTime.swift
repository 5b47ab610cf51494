public import Lockstep

/// The app: its reducer, wrapped by two others.
public struct PrimeTime: Reducer {
  @Dependency(\.writeLine) var writeLine

  public init() {}

  public var body: some Reducer<AppState, AppAction> {
    AppReducer()
      .activityFeed()
      .logging { action, state in
        writeLine("\(action.name): count \(state.count), favorites \(state.favoritePrimes)")
      }
  }
}

/// The features, each pulled back from its own state and actions to those of the app.
private struct AppReducer: Reducer {
  var body: some Reducer<AppState, AppAction> {
    Counter().pullback(state: \.count, action: \.counter)
    PrimeModal().pullback(state: \.primeModal, action: \.primeModal)
    FavoritePrimes().pullback(state: \.favoritePrimes, action: \.favoritePrimes)
    Account().pullback(state: \.loggedInUser, action: \.account)
  }
}

extension DependencyValues {
  /// Writes a line about each action.
  public var writeLine: @Sendable (String) -> Void {
    get { self[WriteLineKey.self] }
    set { self[WriteLineKey.self] = newValue }
  }
}

private enum WriteLineKey: DependencyKey {
  static var liveValue: @Sendable (String) -> Void { { print($0) } }
  static var testValue: @Sendable (String) -> Void { { _ in } }
}
