// Theory of operation
//
// A policy is a list of rules. A peer has the rights that all rules that apply to it grant
// together, minus those that any of them denies: the order of the rules does not matter, and a
// denial wins. The rights are computed once per peer (`Policy.rights`), as values that compare:
// peers that may see the same have equal views, and share scopes, frames and bytes.
//
// A view says of every path whether it is permitted. It is stored as a tree (`ViewNode`), in which
// a pattern's star has become "any other key", so that each key takes one lookup. A scope takes the
// part at its path (`ViewFilter`), and the bytes of every snapshot and patch of that scope pass
// through this filter:
//
//     state -> value form -> filter -> snapshot, digest
//     patch of the whole -> projection -> filter -> patch, or a snapshot where no patch can do it
//
// A filtered state never exists, only filtered bytes.

/// The rules that say which peers may connect, what they may see and what they may do. Policies of
/// equal rules are equal, wherever they are written.
public struct Policy: Hashable, Sendable {
  public var rules: [Rule]
  /// Where the rules come from, for people who want to change them.
  public var source: Source

  public enum Source: Hashable, Sendable {
    case program
    /// The default policy: its rules apply to this user, the daemon's own, and to root.
    case standard(owner: UInt64)
    /// A file, and the line on which each rule begins.
    case file(String, lines: [Int])
  }

  /// A policy of these rules; without rules, no peer may do anything.
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

  /// The rights of a peer. O(rules), and the patterns of those that apply to it.
  public func rights(uid: UInt64, gid: UInt64, groups: [UInt64] = []) -> Rights {
    Rights(of: rules.filter { $0.applies(to: uid, [gid] + groups) })
  }
}

/// The rights that a policy grants to some peers, or denies them.
public struct Rule: Hashable, Sendable {
  /// The users that the rule applies to.
  public var users: Set<UInt64>
  /// The groups whose members the rule applies to, be it their primary group or another.
  public var groups: Set<UInt64>
  /// Whether the rule applies to everyone.
  public var isForEveryone: Bool

  /// Whether they may connect; nil when the rule does not say. False is a denial.
  public var mayConnect: Bool?
  /// Whether they may ask about other clients and about actions, and cancel effects; nil when the
  /// rule does not say. False is a denial.
  public var mayAdminister: Bool?
  /// The paths that they may see.
  public var read: [PathPattern]
  public var denyRead: [PathPattern]
  /// Which actions they may send.
  public var act: [ActionPattern]
  public var denyAct: [ActionPattern]
  /// The paths that they may change by actions that name paths. Nil, in a rule that grants actions,
  /// lets them change what they may see.
  public var write: [PathPattern]?
  public var denyWrite: [PathPattern]

  /// A rule; rights that are left out are neither granted nor denied.
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
