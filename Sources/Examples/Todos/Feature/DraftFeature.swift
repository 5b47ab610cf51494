public import Lockstep

/// A todo that the backend does not have yet.
@ObservableState public struct Draft: Equatable, Identifiable, Sendable {
  public var id: UniqueID
  public var title: String
  /// The reason why it could not be saved; nil while it is being saved.
  public var failure: BackendError?

  public init(id: UniqueID, title: String, failure: BackendError? = nil) {
    self.id = id
    self.title = title
    self.failure = failure
  }
}

/// Saves a draft. Removing the draft meanwhile cancels the saving.
public struct DraftFeature: Reducer {
  @Action public enum Action: Equatable, Sendable {
    case save
    case todoAdded(Result<Todo, BackendError>)
  }

  private enum CancelID { case save }

  @Dependency(\.backend) private var backend

  public init() {}

  public func reduce(into draft: inout Draft, action: Action) -> Effect<Action> {
    switch action {
    case .save:
      draft.failure = nil
      return .run(name: "save") { [title = draft.title, backend] send in
        await send(.todoAdded(backend.create(title)))
      }
      .unlessRunning(id: CancelID.save)
    case .todoAdded(.failure(let failure)):
      draft.failure = failure
      return .none
    case .todoAdded(.success):
      // The list replaces the draft by the todo.
      return .none
    }
  }
}
