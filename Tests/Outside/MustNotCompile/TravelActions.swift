import Lockstep

// Scripts/test-outside compiles this beside a feature, and expects each error that is named here, in
// the line below, and no other: that of a case is at the end of its type.

public struct Point: Equatable, Sendable { public var x = 0 }

@Action public enum Move: Equatable, Sendable {
  case stay
  case go(Int, Point)
  // error: 'go' cannot travel to other processes: put @ObservableState on Point
}
