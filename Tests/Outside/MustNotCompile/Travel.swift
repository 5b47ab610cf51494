import Foundation
import Lockstep

// Scripts/test-outside compiles this beside a feature, and expects each error that is named here, in
// the line below, and no other.

public struct Point: Equatable, Sendable { public var x = 0 }

@ObservableState public struct Place: Equatable {
  // error: 'point' cannot travel to other processes: put @ObservableState on Point
  public var point: Point
  // error: 'since' cannot travel to other processes: import LockstepFoundation for Date
  public var since: Date
  // error: 'sizes' cannot travel to other processes: use a key of another type than UInt8
  public var sizes: [UInt8: Int] = [:]
  public var name = ""
}
