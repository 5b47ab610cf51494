// Theory of operation
//
// A policy is a list of rules. What a peer may do is what all rules that are about it grant
// together, less what any of them denies: the order of the rules means nothing, and a denial wins.
// That is worked out once per peer (`Policy.rights`), into values that compare: peers who may see
// the same have equal views, and share scopes, frames and bytes.
//
// A view says of every path whether it is permitted. It is kept as a tree (`ViewNode`), in which a
// pattern's star has become "any other key", so that one look leads one key on. A scope asks it for
// the part at its path (`ViewFilter`), and the bytes of every snapshot and patch of that scope run
// through this filter:
//
//     state -> value form -> filter -> snapshot, digest
//     patch of the whole -> projection -> filter -> patch, or a snapshot where a patch cannot say
// it
//
// Nobody looks at a filtered state: there is none, only filtered bytes.

/// Who may connect, see and do what. Policies of equal rules are equal, wherever they are written.
public struct Policy: Hashable, Sendable {
  public var rules: [Rule]
  /// Where the rules come from, for those who are to change them.
  public var source: Source

  public enum Source: Hashable, Sendable {
    case program
    /// There is no other policy: the rules are about this user, the daemon's own, and root.
    case standard(owner: UInt64)
    /// A file, and the line on which each rule begins.
    case file(String, lines: [Int])
  }

  /// A policy of these rules; of none, nobody may do anything.
  public init(_ rules: [Rule], from source: Source = .program) {
    self.rules = rules
    self.source = source
  }

  public static func == (first: Policy, second: Policy) -> Bool { first.rules == second.rules }
  public func hash(into hasher: inout Hasher) { hasher.combine(rules) }

  /// The daemon's own user and root may do everything, others nothing: not even connect.
  public static func standard(owner uid: UInt64) -> Policy {
    Policy(
      [
        Rule(
          users: [uid, 0], mayConnect: true, mayAdminister: true, read: [.whole], act: [.all],
          write: [.whole])
      ], from: .standard(owner: uid))
  }

  /// What a peer may do. O(rules), and the patterns of those that are about it.
  public func rights(uid: UInt64, gid: UInt64, groups: [UInt64] = []) -> Rights {
    Rights(of: rules.filter { $0.applies(to: uid, [gid] + groups) })
  }
}

/// What a policy says of some peers.
public struct Rule: Hashable, Sendable {
  /// The users that the rule is about.
  public var users: Set<UInt64>
  /// The groups whose members the rule is about, whichever of their groups it is.
  public var groups: Set<UInt64>
  /// Whether the rule is about everyone.
  public var isForEveryone: Bool

  /// Whether they may connect; nil when the rule does not say. False is a denial.
  public var mayConnect: Bool?
  /// Whether they may ask about other clients and about actions, and cancel effects; nil when the
  /// rule does not say. False is a denial.
  public var mayAdminister: Bool?
  /// What they may see.
  public var read: [PathPattern]
  public var denyRead: [PathPattern]
  /// Which actions they may send.
  public var act: [ActionPattern]
  public var denyAct: [ActionPattern]
  /// What they may change by actions that name paths. Nil lets those whom the rule lets act change
  /// what they may see.
  public var write: [PathPattern]?
  public var denyWrite: [PathPattern]

  /// A rule; what is left out is neither granted nor denied.
  public init(
    users: Set<UInt64> = [], groups: Set<UInt64> = [], isForEveryone: Bool = false,
    mayConnect: Bool? = nil, mayAdminister: Bool? = nil, read: [PathPattern] = [],
    denyRead: [PathPattern] = [], act: [ActionPattern] = [], denyAct: [ActionPattern] = [],
    write: [PathPattern]? = nil, denyWrite: [PathPattern] = []
  ) {
    self.users = users
    self.groups = groups
    self.isForEveryone = isForEveryone
    self.mayConnect = mayConnect
    self.mayAdminister = mayAdminister
    self.read = read
    self.denyRead = denyRead
    self.act = act
    self.denyAct = denyAct
    self.write = write
    self.denyWrite = denyWrite
  }

  func applies(to uid: UInt64, _ gids: [UInt64]) -> Bool {
    isForEveryone || users.contains(uid) || gids.contains(where: groups.contains)
  }
}
