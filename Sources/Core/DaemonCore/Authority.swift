import Access
import Values
import Wire

/// The policy that holds, and what it lets each peer do.
struct Authority: Sendable {
  /// Nil lets everyone do everything.
  private(set) var policy: Policy?
  /// Whether what mirrors of former runs show may be what another policy let them see.
  private var isNew: Bool
  /// The revision at which the policy took another's place in this run.
  private var since: UInt64?
  /// The daemon's own user, if it is known.
  private let owner: UInt64?
  /// What peers were found to have, for many have the same.
  private var known: [Credentials: Rights] = [:]

  private struct Credentials: Hashable {
    let uid: UInt64
    let gid: UInt64
    let groups: [UInt64]
  }

  /// So many are remembered: more users than are at one machine.
  private static let knownLimit = 1024

  init(_ policy: Policy?, isNew: Bool, owner: UInt64? = nil) {
    self.policy = policy
    self.isNew = isNew
    self.owner = owner
  }

  /// Whether the peer is of the daemon's own user: its service manager, which asks for the policy
  /// to be read again, whatever the policy says. It could as well end the daemon and begin it anew.
  func isOwner(_ peer: Peer) -> Bool { peer.uid == owner }

  /// Note that the same rules are written down elsewhere by now.
  mutating func restate(_ policy: Policy) { self.policy = policy }

  /// Take another policy at a revision.
  mutating func replace(by policy: Policy, at revision: UInt64) {
    self.policy = policy
    isNew = true
    since = revision
    known = [:]
  }

  /// What a peer may do; nil where there is no policy.
  mutating func rights(of peer: Peer) -> Rights? {
    guard let policy else { return nil }
    let key = Credentials(uid: peer.uid, gid: peer.gid, groups: peer.groups)
    if let rights = known[key] { return rights }
    let rights = policy.rights(uid: peer.uid, gid: peer.gid, groups: peer.groups)
    if known.count >= Self.knownLimit { known = [:] }
    known[key] = rights
    return rights
  }

  /// Whether what a mirror shows at a position is what this policy let it see.
  func covers(_ position: Position, _ run: UInt64) -> Bool {
    guard position.run == run else { return !isNew }
    // A mirror at the very revision may have come there under the former policy.
    return since.map { position.revision > $0 } ?? true
  }
}
