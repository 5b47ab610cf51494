public import Lockstep

/// A counter that can be asked for a fact about its number, as in ReducerKit.
public struct Counter: Reducer {
  @ObservableState public struct State: Equatable, Sendable {
    public var count = 0
    /// Whether a fact is being loaded.
    @Ephemeral public var isLoading = false
    public var numberFact: String?

    public init(count: Int = 0, isLoading: Bool = false, numberFact: String? = nil) {
      self.count = count
      self.isLoading = isLoading
      self.numberFact = numberFact
    }
  }

  @Action public enum Action: Equatable, Sendable {
    case increment
    case decrement
    case numberFactButtonTapped
    case numberFactResponse(String)
    case cancelFact
  }

  private enum CancelID { case fact }

  @Dependency(\.numberFacts) private var numberFacts

  public init() {}

  public func reduce(into state: inout State, action: Action) -> Effect<Action> {
    switch action {
    case .increment:
      state.count += 1
      return .none
    case .decrement:
      state.count -= 1
      return .none
    case .numberFactButtonTapped:
      state.isLoading = true
      state.numberFact = nil
      // Captures the current number: it may have changed when the fact arrives.
      return .run(name: "fact") { [count = state.count, numberFacts] send in
        await send(.numberFactResponse(try await numberFacts.fact(count)))
      } catch: { _, send in
        // "Loading the fact failed", in the words of the original.
        await send(.numberFactResponse("팩트를 불러오는데 실패했습니다"))
      }
      .cancellable(id: CancelID.fact, cancelInFlight: true)
    case .numberFactResponse(let fact):
      state.isLoading = false
      state.numberFact = fact
      return .none
    case .cancelFact:
      state.isLoading = false
      return .cancel(id: CancelID.fact)
    }
  }
}
