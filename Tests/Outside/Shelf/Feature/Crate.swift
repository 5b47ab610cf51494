import Lockstep

/// A crate of records beside the shelf, which are numbered as those of other crates are.
public struct Crate: Reducer {
  @ObservableState public struct State: Equatable {
    public var records: SyncIdentifiedArray<Record> = []

    public init() {}
  }

  @Action public enum Action: Equatable, Sendable {
    case put(String)
    case take(Record.ID)
    case record(Record.ID, RecordAction)
    /// Ends the playing of every record of this crate.
    case silence
  }

  public init() {}

  public var body: some Reducer<State, Action> {
    Reduce { state, action in
      switch action {
      case .put(let title):
        state.records.append(Record(id: state.records.count + 1, title: title))
      case .take(let id): state.records.remove(id: id)
      case .silence:
        state.records.silence()
        return .cancel(id: "play")
      case .record: break
      }
      return .none
    }
    .forEach(\.records, action: \.record) { Player() }
  }
}
