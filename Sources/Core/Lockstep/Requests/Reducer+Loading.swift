public import Values

extension Reducer where Action: CasePathable {
  /// Load a value by requests, for the actions of `LoadableAction`: Redux Toolkit's
  /// `createAsyncThunk`.
  ///
  ///     .loading(\.forecast, action: \.forecast, for: \.city) { city in
  ///       try await weather.forecast(city)
  ///     } catch: { error in
  ///       .unavailable("\(error)")
  ///     }
  ///
  /// The request runs as an effect with the dependencies of the reducer, and is given `input`, what
  /// it needs of the state when it begins. Its outcome comes back as `loaded` or `failed`. An error
  /// of the type `Failure` is stored as it is, any other as `catch` returns it.
  ///
  /// Only one request runs: `load` cancels the one before. It runs under `name`, by default that of
  /// the case (`forecast`), by which effects of the feature (`.cancel(id: "forecast")`), and the
  /// command line (`lockstep effects cancel forecast`), can cancel it: then `cancel` follows. The
  /// value is changed before this reducer sees the action.
  public func loading<Value, Failure, Input: Sendable>(
    _ property: any WritableKeyPath<State, Loadable<Value, Failure>> & Sendable,
    action actions: CaseKeyPath<Action, LoadableAction<Value, Failure>>, name: String? = nil,
    for input: @escaping @Sendable (State) -> Input,
    request: @escaping @Sendable (Input) async throws -> Value,
    catch failure: @escaping @Sendable (any Error) -> Failure
  ) -> LoadingReducer<Self, Value, Failure, Input> {
    LoadingReducer(
      base: self, property: property, actions: actions, name: name, input: input, request: request,
      failure: failure)
  }

  /// Load a value by requests that need nothing of the state.
  public func loading<Value, Failure>(
    _ property: any WritableKeyPath<State, Loadable<Value, Failure>> & Sendable,
    action actions: CaseKeyPath<Action, LoadableAction<Value, Failure>>, name: String? = nil,
    request: @escaping @Sendable () async throws -> Value,
    catch failure: @escaping @Sendable (any Error) -> Failure
  ) -> LoadingReducer<Self, Value, Failure, Void> {
    loading(
      property, action: actions, name: name, for: { _ in }, request: { _ in try await request() },
      catch: failure)
  }

  /// Load a value by requests whose failures are the texts of their errors.
  public func loading<Value, Input: Sendable>(
    _ property: any WritableKeyPath<State, Loadable<Value, String>> & Sendable,
    action actions: CaseKeyPath<Action, LoadableAction<Value, String>>, name: String? = nil,
    for input: @escaping @Sendable (State) -> Input,
    request: @escaping @Sendable (Input) async throws -> Value
  ) -> LoadingReducer<Self, Value, String, Input> {
    loading(
      property, action: actions, name: name, for: input, request: request, catch: { "\($0)" })
  }

  /// Load a value by requests that need nothing of the state, and whose failures are the texts of
  /// their errors.
  public func loading<Value>(
    _ property: any WritableKeyPath<State, Loadable<Value, String>> & Sendable,
    action actions: CaseKeyPath<Action, LoadableAction<Value, String>>, name: String? = nil,
    request: @escaping @Sendable () async throws -> Value
  ) -> LoadingReducer<Self, Value, String, Void> {
    loading(property, action: actions, name: name, request: request, catch: { "\($0)" })
  }
}
