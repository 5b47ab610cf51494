public import Values

/// A value that a request loads: what it was last, whether a request runs, and why the last one
/// failed.
///
///     @ObservableState struct State: Equatable {
///       var city = "Oslo"
///       var forecast = Loadable<Forecast, String>()
///     }
///     @Action enum Action: Equatable {
///       case move(String)
///       case forecast(LoadableAction<Forecast, String>)
///     }
///
///     var body: some Reducer<State, Action> {
///       Reduce { state, action in … }
///         .loading(\.forecast, action: \.forecast, for: \.city) { city in
///           try await weather.forecast(city)
///         }
///     }
///
/// While a request runs, and after it has failed, the former value remains. A daemon that restarts
/// runs no request: `isLoading` is ephemeral. Neither type may be optional, because nil
/// means that there is no value, or no failure.
public struct Loadable<Value: Synchronizable, Failure: Synchronizable>: Sendable {
  /// What a loadable value is at a time.
  public enum Phase: Hashable, Sendable {
    /// Nothing was loaded, and no request runs.
    case idle
    /// A request runs; there may be a former value.
    case loading
    case loaded
    /// The last request failed; there may be a former value.
    case failed
  }

  /// Whether a request runs.
  public internal(set) var isLoading = false
  /// The value that was loaded last.
  public var value: Value?
  /// The failure of the last request that has ended; nil if it loaded the value.
  public internal(set) var failure: Failure?

  /// Nothing was loaded, and no request runs.
  public init() {}

  public var phase: Phase {
    if isLoading { return .loading }
    if failure != nil { return .failed }
    return value == nil ? .idle : .loaded
  }

  // MARK: Changing

  /// A request begins.
  public mutating func begin() { isLoading = true }

  /// The request was cancelled: the phase is again what it was before it.
  public mutating func cancel() { isLoading = false }

  /// A request has loaded the value.
  public mutating func succeed(with value: Value) {
    isLoading = false
    self.value = value
    failure = nil
  }

  /// A request has failed. The former value remains.
  public mutating func fail(with failure: Failure) {
    isLoading = false
    self.failure = failure
  }

  // MARK: Making

  public static var idle: Loadable { Loadable() }

  public static func loading(former value: Value? = nil) -> Loadable {
    Loadable(isLoading: true, value: value)
  }

  public static func loaded(_ value: Value) -> Loadable { Loadable(value: value) }

  public static func failed(_ failure: Failure, former value: Value? = nil) -> Loadable {
    Loadable(value: value, failure: failure)
  }

  private init(isLoading: Bool = false, value: Value? = nil, failure: Failure? = nil) {
    self.isLoading = isLoading
    self.value = value
    self.failure = failure
  }
}

extension Loadable: Equatable where Value: Equatable, Failure: Equatable {}
