extension AppAction {
  /// Whether a user may send the action, as the kernel names the user.
  public func mayBeSent(by user: UInt64, administrator: UInt64) -> Bool {
    switch self {
    case .launch, .restore: false  // The daemon keeps these to itself.
    case .loginAction(.evict), .crash: user == administrator
    case .tabAction, .navigationAction, .loginAction: true
    }
  }
}
