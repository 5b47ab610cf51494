import Access
import Documents
import Values

/// Parses the bytes of a policy file.
struct PolicyReader {
  /// The file, for errors.
  let file: String
  /// The schema that defines the paths and actions.
  let schema: Schema
  /// Whether the feature's actions name paths, so that rules can restrict the paths.
  let namesPaths: Bool
  var accounts = Accounts.system
  /// Notes and account numbers that were found beside the rules.
  private let findings = Findings()

  /// The most places that a client's view may distinguish: far more than a person writes down, and
  /// some milliseconds to compute.
  static let placesLimit = 10_000

  /// Parse a policy. O(bytes), and a lookup for each name.
  func load(_ bytes: [UInt8]) throws(PolicyError) -> LoadedPolicy {
    let policy = try policy(bytes)
    return LoadedPolicy(
      file: file, policy: policy, notes: findings.notes, bytes: bytes, users: findings.users,
      groups: findings.groups)
  }

  private func policy(_ bytes: [UInt8]) throws(PolicyError) -> Policy {
    let root: YAMLNode
    do throws(YAMLError) {
      root = try YAMLParser.document(bytes)
    } catch {
      throw PolicyError(file, error.line, error.message)
    }
    let members = try members(of: root, "a policy", ["version", "rules"])
    guard let version = members["version"] else {
      throw error(root, "\"version\" is missing: write `version: 1`")
    }
    guard case .scalar("1") = version.content else {
      throw error(version, "this daemon reads \"version\" 1 only")
    }
    guard let list = members["rules"] else { throw error(root, "\"rules\" is missing") }
    let nodes = try nodes(of: list, "rules", "- everyone: true")
    var rules: [Rule] = []
    for node in nodes { rules.append(try rule(node)) }
    try check(rules, list)
    noteBlindWrites(zip(rules, nodes))
    return Policy(rules, from: .file(file, lines: nodes.map(\.line)))
  }

  private func check(_ rules: [Rule], _ node: YAMLNode) throws(PolicyError) {
    guard rules.contains(where: { $0.mayConnect == true }) else {
      throw error(node, "no rule says `connect: true`, so nobody could connect")
    }
    let patterns = rules.flatMap { $0.read + $0.denyRead + ($0.write ?? []) + $0.denyWrite }
    guard PathPattern.expansion(of: patterns, upTo: Self.placesLimit) < Self.placesLimit else {
      throw error(
        node,
        "the paths of all rules tell apart \(Self.placesLimit) places or more, for stars beside "
          + "keys multiply: write fewer")
    }
  }

  /// Note the paths that may be written and that no rule makes readable: writing needs both.
  private func noteBlindWrites(_ rules: some Sequence<(Rule, YAMLNode)>) {
    let readable = View(granting: rules.flatMap(\.0.read))
    for (rule, node) in rules {
      for pattern in rule.write ?? [] where !readable.meets(pattern) {
        findings.notes.append(
          error(
            node,
            "write \(pattern) has no effect, for no rule lets anybody read it: what is written tells of "
              + "what was there before. Add it to \"read\" too"))
      }
    }
  }

  // MARK: Rules

  private static let keys = [
    "users", "groups", "everyone", "connect", "administer", "read", "deny-read", "act", "deny-act",
    "write", "deny-write",
  ]

  private func rule(_ node: YAMLNode) throws(PolicyError) -> Rule {
    let members = try members(of: node, "a rule", Self.keys)
    if !namesPaths, let node = members["write"] ?? members["deny-write"] {
      throw error(
        node, "the actions of this daemon name no paths to write to: say which by \"act\"")
    }
    let rule = Rule(
      users: try ids(members["users"], "users"), groups: try ids(members["groups"], "groups"),
      isForEveryone: try flag(members["everyone"], "everyone") ?? false,
      mayConnect: try flag(members["connect"], "connect"),
      mayAdminister: try flag(members["administer"], "administer"),
      read: try paths(members["read"], "read") ?? [],
      denyRead: try paths(members["deny-read"], "deny-read") ?? [],
      act: try actions(members["act"], "act"),
      denyAct: try actions(members["deny-act"], "deny-act"),
      write: try paths(members["write"], "write"),
      denyWrite: try paths(members["deny-write"], "deny-write") ?? [])
    guard rule.isForEveryone || members["users"].hasItems || members["groups"].hasItems else {
      throw error(
        node, "the rule is about nobody: say for whom it is by users, groups, or `everyone: true`")
    }
    return rule
  }

  private func flag(_ node: YAMLNode?, _ key: String) throws(PolicyError) -> Bool? {
    guard let node else { return nil }
    switch node.content {
    case .scalar("true"): return true
    case .scalar("false"): return false
    case .scalar, .sequence, .mapping:
      throw error(node, "\(key.quoted) is true or false, not \(node.summary)")
    }
  }

  // MARK: Users and groups

  private func ids(_ node: YAMLNode?, _ key: String) throws(PolicyError) -> Set<UInt64> {
    guard let node else { return [] }
    var ids: Set<UInt64> = []
    for node in try nodes(of: node, key, key == "users" ? "[alice, 1000]" : "[operators, 27]") {
      if let id = try id(node, key) { ids.insert(id) }
    }
    return ids
  }

  /// The number of an account; nil if there is no account of that name. That is a note and no
  /// error: a deleted account must not invalidate the policy.
  private func id(_ node: YAMLNode, _ key: String) throws(PolicyError) -> UInt64? {
    let isUser = key == "users"
    let kind = isUser ? "user" : "group"
    let name = try text(node, "the name or number of a \(kind)")
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    if !name.isEmpty, name.utf8.allSatisfy(digits.contains) {
      // The greatest number means no user.
      guard let id = UInt32(name), id < .max, String(id) == name else {
        throw error(node, "\(name.quoted) is no number of a \(kind): 0 to 4294967294")
      }
      return UInt64(id)
    }
    if let known = isUser ? findings.users[name] : findings.groups[name] { return known }
    switch isUser ? accounts.user(name) : accounts.group(name) {
    case .found(let id):
      if isUser { findings.users[name] = id } else { findings.groups[name] = id }
      return id
    case .unknown:
      findings.notes.append(
        error(
          node,
          "there is no \(kind) \(name.quoted) on this machine, so the rule is not about it: create it, "
            + "or write one that `getent \(isUser ? "passwd" : "group")` lists, or a number"))
      return nil
    case .failed(let reason):
      throw error(node, "whether there is a \(kind) \(name.quoted) cannot be told: \(reason)")
    }
  }

  // MARK: Paths and actions

  private func paths(_ node: YAMLNode?, _ key: String) throws(PolicyError) -> [PathPattern]? {
    guard let node else { return nil }
    var patterns: [PathPattern] = []
    for node in try nodes(of: node, key, "[/public]") {
      let text = try text(node, "a path")
      do throws(PathText.Failure) {
        patterns += try PathText(text, schema).patterns
      } catch {
        throw self.error(node, error.message)
      }
      guard patterns.count < Self.placesLimit else {
        throw self.error(node, "\(Self.placesLimit) paths or more in one list: write fewer")
      }
    }
    return patterns
  }

  private func actions(_ node: YAMLNode?, _ key: String) throws(PolicyError) -> [ActionPattern] {
    guard let node else { return [] }
    var patterns: [ActionPattern] = []
    for node in try nodes(of: node, key, "[set, \"todos.*\"]") {
      let text = try text(node, "the name of an action")
      do throws(UnknownAction) {
        patterns.append(try ActionPattern(text, of: schema))
      } catch {
        throw self.error(node, error.message)
      }
    }
    return patterns
  }

  // MARK: Nodes

  /// The members of a mapping that may have these keys.
  private func members(
    of node: YAMLNode, _ what: String, _ keys: [String]
  ) throws(PolicyError) -> [String: YAMLNode] {
    guard case .mapping(let list) = node.content else {
      throw error(node, "\(what) is made of keys and values, as in `\(keys[0]): …`")
    }
    var members: [String: YAMLNode] = [:]
    for member in list {
      guard keys.contains(where: { String.isSame($0, member.key) }) else {
        throw PolicyError(
          file, member.line,
          "\(what) has no key \(member.key.quoted); there are: \(keys.sentence)"
            + member.key.near(keys))
      }
      members[member.key] = member.value
    }
    return members
  }

  private func nodes(
    of node: YAMLNode, _ key: String, _ example: String
  ) throws(PolicyError) -> [YAMLNode] {
    guard case .sequence(let nodes) = node.content else {
      throw error(node, "\(key.quoted) is a list, as in `\(example)`, not \(node.summary)")
    }
    return nodes
  }

  private func text(_ node: YAMLNode, _ what: String) throws(PolicyError) -> String {
    guard case .scalar(let text) = node.content else {
      throw error(node, "\(what) must stand here, not \(node.summary)")
    }
    return text
  }

  private func error(_ node: YAMLNode, _ message: String) -> PolicyError {
    PolicyError(file, node.line, message)
  }
}

/// Notes and account numbers that are found beside the rules.
private final class Findings {
  var notes: [PolicyError] = []
  var users: [String: UInt64] = [:]
  var groups: [String: UInt64] = [:]
}

extension YAMLNode? {
  /// Whether it is a list with something in it.
  fileprivate var hasItems: Bool {
    if case .sequence(let nodes)? = self?.content { !nodes.isEmpty } else { false }
  }
}

extension YAMLNode {
  /// The node in few words.
  fileprivate var summary: String {
    switch content {
    case .scalar(""): "nothing"
    case .scalar(let text): text.quoted
    case .sequence: "a list"
    case .mapping: "keys and values"
    }
  }
}

extension [String] {
  /// All of them, in their order.
  var sentence: String { isEmpty ? "none." : joined(separator: ", ") + "." }
}

extension String {
  /// The nearest name, if it is near enough and the text is not too long to be a name: two swapped
  /// letters are near enough.
  func near(_ names: [String]) -> String {
    utf8.count > 60 ? "" : hint(among: names, within: Swift.max(2, count / 3))
  }
}
