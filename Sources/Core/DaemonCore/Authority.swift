import Access
import Values
import Wire

/// The current policy, and the rights that it gives to peers.
struct Authority: Sendable {
  /// Nil if there is no policy: then every peer may do everything.
  private(set) var policy: Policy?
  /// Whether mirrors of former runs may hold data that another policy let them see.
  private var isNew: Bool
  /// The revision at which the policy replaced another in this run.
  private var since: UInt64?
  /// The daemon's own user, if it is known.
  private let owner: UInt64?
  /// Cached rights, because many peers have the same credentials.
  private var known: [Credentials: Rights] = [:]

  private struct Credentials: Hashable {
    let uid: UInt64
    let gid: UInt64
    let groups: [UInt64]
  }

  /// The most cached entries: more than the users of one machine.
  private static let knownLimit = 1024

  init(_ policy: Policy?, isNew: Bool, owner: UInt64? = nil) {
    self.policy = policy
    self.isNew = isNew
    self.owner = owner
  }

  /// Whether the peer runs as the daemon's own user, as the service manager does. It may ask for a
  /// reload of the policy whatever the policy says, because it could as well restart the daemon.
  func isOwner(_ peer: Peer) -> Bool { peer.uid == owner }

  /// Store an equal policy, whose source may be another one.
  mutating func restate(_ policy: Policy) { self.policy = policy }

  /// Replace the policy at a revision.
  mutating func replace(by policy: Policy, at revision: UInt64) {
    self.policy = policy
    isNew = true
    since = revision
    known = [:]
  }

  /// The rights of a peer; nil if there is no policy.
  mutating func rights(of peer: Peer) -> Rights? {
    guard let policy else { return nil }
    let key = Credentials(uid: peer.uid, gid: peer.gid, groups: peer.groups)
    if let rights = known[key] { return rights }
    let rights = policy.rights(uid: peer.uid, gid: peer.gid, groups: peer.groups)
    if known.count >= Self.knownLimit { known = [:] }
    known[key] = rights
    return rights
  }

  /// Whether a mirror at a position holds only what this policy let it see.
  func covers(_ position: Position, _ run: UInt64) -> Bool {
    guard position.run == run else { return !isNew }
    // A mirror at exactly that revision may have reached it under the former policy.
    return since.map { position.revision > $0 } ?? true
  }
}
