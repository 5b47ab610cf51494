public import Lockstep

/// The whole state of the app, as one value.
@ObservableState
public struct AppState: Equatable, Sendable {
  public var count = 0
  public var favoritePrimes: [Int] = []
  public var activityFeed: [Activity] = []
  public var loggedInUser: User?

  public init() {}
}

/// An event in the feed, with its time.
@ObservableState
public struct Activity: Equatable, Sendable {
  public var timestamp: Timestamp
  public var type: ActivityType

  public init(timestamp: Timestamp, type: ActivityType) {
    self.timestamp = timestamp
    self.type = type
  }
}

@ObservableState(frozen: true)
public enum ActivityType: Equatable, Sendable {
  case addedFavoritePrime(Int)
  case removedFavoritePrime(Int)
}

@ObservableState
public struct User: Equatable, Identifiable, Sendable {
  public let id: Int
  public var name: String
  public var bio: String

  public init(id: Int, name: String, bio: String) {
    self.id = id
    self.name = name
    self.bio = bio
  }
}
