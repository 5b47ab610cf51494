import Lockstep

@ObservableState public struct Record: Equatable, Identifiable {
  public var id: Int
  public var title: String
  public var mood = Mood.unknown
  public var isPlaying = false
  /// How often its daemon has started with it.
  public var starts = 0

  public init(id: Int, title: String) {
    self.id = id
    self.title = title
  }
}

@ObservableState public enum Mood: Equatable {
  case calm, wild
  @Fallback case unknown
}

@Action public enum RecordAction: Equatable, Sendable {
  case judge(Mood), play, stop, played, began
}

/// Plays a record, which takes an hour unless it is stopped.
public struct Player: Reducer {
  @Dependency(\.clock) private var clock

  public init() {}

  public var lifecycle: Lifecycle<Record, RecordAction> { .onStart { _ in .began } }

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
    case .stop:
      record.isPlaying = false
      return .run(name: "stop") { _ in await Task.cancel(id: "play") }
    case .played: record.isPlaying = false
    case .began: record.starts += 1
    }
    return .none
  }
}

extension SyncIdentifiedArray<Record> {
  /// No record is being played any more.
  mutating func silence() {
    for id in ids { self[id: id]?.isPlaying = false }
  }
}
