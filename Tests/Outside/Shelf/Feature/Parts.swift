import Lockstep

/// A part of something, which has parts too.
@ObservableState public struct Part: Equatable, Identifiable {
  public var id: Int
  public var title: String
  public var isDone = false
  public var parts: SyncMap<Int, Part> = [:]

  public init(id: Int, title: String) {
    self.id = id
    self.title = title
  }
}

/// A feature whose rows are of its own type.
public struct Parts: Reducer {
  public typealias State = Part

  @Action public indirect enum Action: Equatable, Sendable {
    case toggle
    case add(String)
    case part(Part.ID, Action)
  }

  public init() {}

  public var body: some Reducer<Part, Action> {
    Reduce { state, action in
      switch action {
      case .toggle: state.isDone.toggle()
      case .add(let title):
        let id = state.parts.count + 1
        state.parts[id] = Part(id: id, title: title)
      case .part: break
      }
      return .none
    }
    .forEach(\.parts, action: \.part) { Parts() }
  }
}
