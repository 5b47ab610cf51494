extension AppAction {
  /// Whether a user, as the kernel identifies it, may send the action.
  public func mayBeSent(by user: UInt64, administrator: UInt64) -> Bool {
    switch self {
    case .launch, .restore: false  // Only the daemon itself sends these.
    case .loginAction(.evict), .crash: user == administrator
    case .tabAction, .navigationAction, .loginAction: true
    }
  }
}
