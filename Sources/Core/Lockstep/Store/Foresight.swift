/// What has been worked out about an action before it is performed (`Reducer.foresee`).
public struct Foresight: Sendable {
  /// The patch that the action makes if this holds; empty if it then changes nothing. An array without
  /// room for more is stored in the history as it is, not copied.
  public let patch: [UInt8]
  /// By what the reducer recognises whether it holds.
  public let hint: any Sendable

  public init(patch: [UInt8], hint: any Sendable) {
    self.patch = patch
    self.hint = hint
  }
}
