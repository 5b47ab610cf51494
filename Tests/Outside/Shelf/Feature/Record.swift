import Lockstep

@ObservableState public struct Record: Equatable, Identifiable {
  public var id: Int
  public var title: String
  public var mood = Mood.unknown
  public var isPlaying = false

  public init(id: Int, title: String) {
    self.id = id
    self.title = title
  }
}

@ObservableState public enum Mood: Equatable {
  case calm, wild
  @Fallback case unknown
}

@Action public enum RecordAction: Equatable, Sendable { case judge(Mood), play, played }

/// Plays a record, which takes an hour.
public struct Player: Reducer {
  @Dependency(\.clock) private var clock

  public init() {}

  public func reduce(into record: inout Record, action: RecordAction) -> Effect<RecordAction> {
    switch action {
    case .judge(let mood): record.mood = mood
    case .play:
      record.isPlaying = true
      return .run { [clock] send in
        try await clock.pause(for: .seconds(3600))
        await send(.played)
      }
      .cancellable(id: "play")
    case .played: record.isPlaying = false
    }
    return .none
  }
}
