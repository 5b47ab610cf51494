import Access
import CBOR
import Documents
import Lockstep
import Testing
import Values

@Suite struct PolicyTests {
  let policy = Policy([
    Rule(
      users: [1000], groups: [27], mayConnect: true, read: [.whole],
      denyRead: patterns(["secrets", "users/*/password"]), act: [.all],
      denyAct: [.part("admin")]),
    Rule(isForEveryone: true, mayConnect: true, read: patterns(["public"])),
    Rule(groups: [99], mayConnect: false, mayAdminister: false),
    Rule(
      users: [0], mayAdminister: true, write: patterns(["inbox"]),
      denyWrite: patterns(["log"])),
  ])

  @Test func `a peer has the grants of all rules that match it, less any denials`() {
    let stranger = policy.rights(uid: 5, gid: 5)
    #expect(stranger.mayConnect && !stranger.mayAdminister && !stranger.mayAct("set"))
    #expect(stranger.mayRead(["public", "news"]) && !stranger.mayRead(["users"]))
    let user = policy.rights(uid: 1000, gid: 1000)
    #expect(user.mayAct("todos.toggle") && !user.mayAct("admin.reset"))
    #expect(user.mayRead(["public"]) && user.mayRead(["users", "bob", "name"]))
    #expect(
      !user.mayRead(["secrets", "x"]) && !user.mayRead(["users", "bob"]) && !user.mayRead([]))
    #expect(!policy.rights(uid: 1000, gid: 1000, groups: [4, 99]).mayConnect)
    #expect(policy.rights(uid: 0, gid: 0).mayAdminister)
    #expect(!policy.rights(uid: 0, gid: 99).mayAdminister)
  }

  @Test func `a rule matches the members of its groups, primary or supplementary`() {
    let member = policy.rights(uid: 1000, gid: 1000)
    #expect(policy.rights(uid: 7, gid: 27) == member)
    #expect(policy.rights(uid: 7, gid: 7, groups: [3, 27]) == member)
    #expect(policy.rights(uid: 27, gid: 7) != member)
  }

  @Test func `peers with equal permissions have equal rights`() {
    let padded = Policy([
      Rule(
        users: [1], mayConnect: true, read: patterns(["a", "a/b", "b"]), denyRead: patterns(["c"]),
        act: [.all, .name("set")], denyAct: [.name("x"), .name("x.y"), .part("x")]),
      Rule(
        users: [2], mayConnect: true, read: patterns(["b", "a", "d"]),
        denyRead: patterns(["d", "a/b/c/d", "a/b/c/d/*"]), act: [.all], denyAct: [.name("x")]),
      Rule(users: [1], denyRead: patterns(["a/b/c/d"])),
    ])
    let (first, second) = (padded.rights(uid: 1, gid: 1), padded.rights(uid: 2, gid: 2))
    #expect(first == second && first.hashValue == second.hashValue)
  }

  @Test func `the standard policy admits the daemon's user and root alone`() {
    let standard = Policy.standard(owner: 1000)
    for uid in [0, 1000] as [UInt64] {
      let rights = standard.rights(uid: uid, gid: 5)
      #expect(rights.mayConnect && rights.mayAdminister && rights.isUnrestricted)
      #expect(rights.view == .everything && rights.mayAct("any") && rights.mayWrite(["a"]))
    }
    let stranger = standard.rights(uid: 1001, gid: 1000, groups: [0])
    #expect(!stranger.mayConnect && !stranger.isUnrestricted)
    #expect(stranger.view.filter(at: .root) == nil && !stranger.mayAct("set"))
  }

  @Test func `a peer with every permission is unrestricted, however the policy says it`() {
    let said = Rule(users: [1], mayConnect: true, mayAdminister: true, read: [.whole], act: [.all])
    #expect(Policy([said]).rights(uid: 1, gid: 1).isUnrestricted)
    var less = said
    less.denyWrite = patterns(["log"])
    #expect(!Policy([less]).rights(uid: 1, gid: 1).isUnrestricted)
  }

  @Test func `a peer that may act may write what it may read, unless a rule grants less`() {
    let user = policy.rights(uid: 1000, gid: 1000)
    #expect(user.mayWrite(["a"]) && user.mayWrite(["users", "bob", "name"]))
    #expect(!user.mayWrite(["secrets"]) && !user.mayWrite(["users", "bob"]) && !user.mayWrite([]))
    let stranger = policy.rights(uid: 5, gid: 5)
    #expect(!stranger.mayWrite(["public"]), "who may not act writes nothing")
    let root = policy.rights(uid: 0, gid: 27)
    #expect(root.mayWrite(["inbox", "x"]) && root.mayWrite(["a"]) && !root.mayWrite(["log"]))
    let inboxOnly = Policy([
      Rule(isForEveryone: true, read: [.whole], act: [.all], write: patterns(["inbox"]))
    ]).rights(uid: 1, gid: 1)
    #expect(inboxOnly.mayWrite(["inbox", "me"]) && !inboxOnly.mayWrite(["a"]))
  }

  @Test(arguments: [
    ("*", ["a", "a.b"], []), ("a", ["a", "a.b", "a.b.c"], ["b", "ab", "b.a"]),
    ("a.*", ["a.b", "a.b.c"], ["a", "ab", "a*"]), ("a.b", ["a.b", "a.b.c"], ["a", "a.c"]),
  ])
  func `an action pattern covers its names and no others`(
    _ text: String, _ matching: [String], _ others: [String]
  ) throws {
    let pattern = try #require(ActionPattern(text))
    #expect(pattern.description == text)
    #expect(matching.allSatisfy(pattern.covers) && !others.contains(where: pattern.covers))
  }

  @Test(arguments: ["", ".*", "a*", "*.a", "a.*.b", "**"])
  func `an invalid pattern is refused`(_ text: String) { #expect(ActionPattern(text) == nil) }

  @Test func `a pattern is printed as it is written`() {
    #expect(PathPattern.whole.description == "/")
    #expect(pattern("a/*/3").description == "/a/*/3")
    #expect(PathPattern(["a*b", "*", "~/"]).description == "/a~2b/~2/~0~1")
  }

  @Test func `patterns that combine stars and keys expand multiplicatively, up to a bound`() {
    #expect(PathPattern.expansion(of: [.whole], upTo: 100) == 2)
    #expect(PathPattern.expansion(of: patterns(["a/b", "a/c", "d"]), upTo: 100) == 7)
    let crossed = (0..<8).flatMap { place in
      (0..<8).map { number in
        PathPattern(
          (0..<8).map { $0 == place ? .key(.text("\(number)")) : .any })
      }
    }
    #expect(PathPattern.expansion(of: crossed, upTo: 10_000) == 10_000)
  }
}

@Suite struct AuthorityOfActionsTests {
  let seed = HashSeed(1)

  private func state(_ text: String) throws -> Document {
    Document(try JSON.parse(text, seed: seed), seed: seed)
  }

  private func refusal(_ action: DocumentAction, _ rule: Rule, on text: String) throws -> String? {
    var rule = rule
    rule.isForEveryone = true
    let refusal = Policy([rule]).rights(uid: 1, gid: 1).refusal(of: action, in: try state(text))
    if let refusal { #expect(refusal.code == .denied) }
    return refusal?.message
  }

  @Test func `all actions in a transaction must be allowed`() throws {
    let rule = Rule(read: [.whole], act: [.name("transaction"), .name("set")])
    let inner = DocumentAction.transaction([.set(["a"], 1), .remove(["a"])])
    #expect(try refusal(.transaction([.set(["a"], 1)]), rule, on: "{}") == nil)
    #expect(try refusal(inner, rule, on: "{}") == "you may not send remove")
    #expect(
      try refusal(.transaction([.transaction([inner])]), rule, on: "{}")
        == "you may not send remove")
  }

  @Test func `an action needs the right to read what it reads and to write what it writes`() throws
  {
    let rule = Rule(
      read: [.whole], denyRead: patterns(["s", "u/*/p"]), act: [.all],
      write: patterns(["s", "u", "w"]))
    let text = #"{"s": {"x": 1}, "u": {"b": {"p": 1, "n": 2}}, "w": {}, "r": 1}"#
    for (action, expected) in [
      (.test(["s", "x"], 1), "test needs the right to read /s/x"),
      (.copy(from: ["s"], to: ["w"]), "copy needs the right to read /s"),
      (.move(from: ["u"], to: ["w", "u"]), "move needs the right to read /u"),
      (.move(from: ["u", "b", "n"], to: ["w", "n"]), nil),
      (.move(from: ["r"], to: ["w", "r"]), "move needs the right to write /r"),
      (.set(["s", "y"], 1), "set needs the right to read /s/y"), (.set(["w", "y"], 1), nil),
      (.remove(["u", "b", "p"]), "remove needs the right to read /u/b/p"),
      (.set(["r"], 1), "set needs the right to write /r"),
      (.test(["r"], 1), nil), (.merge([], [:]), "merge needs the right to read the whole"),
    ] as [(DocumentAction, String?)] {
      #expect(try refusal(action, rule, on: text) == expected)
    }
  }

  @Test func `an array is guarded as a whole`() throws {
    let denied = PathPattern(["list", "0"])
    let rule = Rule(read: [.whole], denyRead: [denied], act: [.all])
    let asArray = #"{"list": [1, 2]}"#
    // A client that may move elements could move a denied one to a permitted index.
    for action in [
      .test(["list", "1"], 1), .test(["list", 1], 1), .copy(from: ["list", "-"], to: ["a"]),
      .remove(["list", "1"]), .insert(["list", "-"], 1), .append(["list"], 1),
    ] as [DocumentAction] {
      #expect(try refusal(action, rule, on: asArray) != nil, "\(action)")
    }
    let asObject = #"{"list": {"0": 1, "1": 2}}"#
    #expect(try refusal(.test(["list", "1"], 1), rule, on: asObject) == nil)
    #expect(try refusal(.test(["list", "0"], 1), rule, on: asObject) != nil)
    let free = Rule(read: patterns(["list"]), act: [.all])
    #expect(try refusal(.test(["list", 1], 1), free, on: asArray) == nil)
  }

  @Test func `a path is cut where a subscription to it would be`() throws {
    let document = try state(#"{"a": {"b": [{"c": 1}]}, "d": 1}"#)
    #expect(document.reach(of: ["a", "b", 0, "c"]) == ["a", "b"])
    #expect(document.reach(of: ["a", "x", "y"]) == ["a", "x", "y"])
    #expect(document.reach(of: ["d", "y"]) == ["d", "y"])
    #expect(document.reach(of: []) == [])
    let typed = First.State()
    #expect(typed.reach(of: [1, 0, 2]) == [1])
    #expect(typed.reach(of: [3, 1]) == [3])
    #expect(typed.reach(of: [5, 7, 1]) == [5, 7, 1])
  }

  @Test func `a rejection reveals no more than the client may read`() throws {
    let rights = Policy([
      Rule(isForEveryone: true, read: [.whole], denyRead: patterns(["s", "list/*/x"]), act: [.all])
    ]).rights(uid: 1, gid: 1)
    let document = try state(#"{"a": 1, "s": 2, "list": [1]}"#)
    let open = Rejection(.testFailed, "expected 1, found 2", at: ["a"])
    #expect(rights.redacted(open, in: document) == open)
    for path in [nil, ["s", "x"], [], ["list", 0]] as [Path?] {
      #expect(
        rights.redacted(Rejection(.testFailed, "expected 1, found 2", at: path), in: document)
          == Rejection(.testFailed, "the test did not hold"))
    }
    #expect(
      rights.redacted(Rejection(.refused, "2 is too small"), in: document)
        == Rejection(.refused, "the feature refuses the action"))
    #expect(
      rights.redacted(Rejection(.init(rawValue: 77), "2"), in: document)
        == Rejection(.init(rawValue: 77), "the action was rejected with code 77"))
    let all = Policy.standard(owner: 1).rights(uid: 1, gid: 1)
    #expect(all.redacted(Rejection(.refused, "2"), in: document).message == "2")
  }

  // MARK: Explanations

  @Test func `a missing right is explained by the rule that takes it`() {
    let policy = Policy(
      [
        Rule(users: [0], mayConnect: true, mayAdminister: true, read: [.whole], act: [.all]),
        Rule(
          isForEveryone: true, denyRead: [PathPattern([.key("users"), .any, .key("password")])],
          denyAct: [.name("remove")]),
        Rule(
          users: [7], mayConnect: false, read: [PathPattern(["a"])], denyWrite: [PathPattern(["b"])]
        ),
      ], from: .file("p.yaml", lines: [3, 8, 12]))
    func why(_ right: MissingRight, uid: UInt64 = 0) -> String {
      policy.explanation(of: right, uid: uid, gid: uid)
    }
    let password = "deny-read /users/*/password"
    #expect(why(.read(.root)) == "\(password) of the rule at p.yaml:8")
    #expect(why(.read(["users", "bob"])) == "\(password) of the rule at p.yaml:8")
    #expect(
      why(.read(["users", "bob", "password", "x"])) == "\(password) of the rule at p.yaml:8")
    #expect(
      why(.write(.root))
        == "no `write` grants it, and \(password) of the rule at p.yaml:8 takes it from what may be "
        + "read")
    #expect(why(.act("remove")) == "deny-act remove of the rule at p.yaml:8")
    #expect(why(.connect, uid: 7) == "connect: false of the rule at p.yaml:12")
    #expect(why(.write(["b", "c"]), uid: 7) == "deny-write /b of the rule at p.yaml:12")
    #expect(why(.read(["c"]), uid: 7) == "no rule in p.yaml grants it to user 7")
    #expect(why(.act("set"), uid: 9) == "no rule in p.yaml grants it to user 9")
    #expect(
      Policy.standard(owner: 3).explanation(of: .connect, uid: 4, gid: 4)
        == "there is no policy file (--policy)")
  }

  @Test func `an action without paths needs only the right to its name`() {
    let rights = Policy([Rule(isForEveryone: true, act: [.name("go")])]).rights(uid: 1, gid: 1)
    #expect(rights.refusal(of: Named(name: "go"), in: 0) == nil)
    #expect(rights.refusal(of: Named(name: "stop"), in: 0)?.message == "you may not send stop")
  }

  struct Named: SynchronizableAction, SynchronizableScalar, Equatable {
    let name: String
    func encode(into encoder: inout CBOREncoder) { encoder.encode(name) }
    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .text }
    init(name: String) { self.name = name }
    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      name = try decoder.text()
    }
  }
}
