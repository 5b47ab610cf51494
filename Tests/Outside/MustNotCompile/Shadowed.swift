import Lockstep

// Scripts/test-outside compiles this beside a feature, and expects an error: the type only has the
// name of one that can travel.

public struct Song {
  public struct Duration: Equatable, Sendable { public var beats = 0 }

  @ObservableState public struct State: Equatable {
    public var length: Duration
  }
}
