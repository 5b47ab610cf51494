public import Lockstep

/// A todo, as the backend has it.
@ObservableState public struct Todo: Equatable, Identifiable, Sendable {
  public var id: Int
  public var title: String
  public var isCompleted = false

  public init(id: Int, title: String, isCompleted: Bool = false) {
    self.id = id
    self.title = title
    self.isCompleted = isCompleted
  }
}

/// A part of the backend's list.
@ObservableState public struct Page: Equatable, Sendable {
  /// 0 for the first.
  public var number: Int
  public var todos: [Todo]
  /// Whether there are later pages.
  public var hasMore: Bool

  public init(number: Int, todos: [Todo], hasMore: Bool) {
    self.number = number
    self.todos = todos
    self.hasMore = hasMore
  }
}
