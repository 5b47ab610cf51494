import Access
import Documents
import Glibc
import Lockstep
import Testing
import Values

@testable import LockstepServer

/// A policy of a document daemon, on a machine with these users and groups.
private func policy(
  _ text: String, schema: Schema = DocumentFeature.schema, namesPaths: Bool = true
) throws(PolicyError) -> Policy {
  try policy(Array(text.utf8), schema: schema, namesPaths: namesPaths)
}

private func policy(
  _ bytes: [UInt8], schema: Schema = DocumentFeature.schema, namesPaths: Bool = true
) throws(PolicyError) -> Policy {
  try load(bytes, schema: schema, namesPaths: namesPaths).policy
}

private func load(
  _ bytes: [UInt8], schema: Schema = DocumentFeature.schema, namesPaths: Bool = true
) throws(PolicyError) -> LoadedPolicy {
  let accounts = Accounts(
    user: {
      ["root": .found(0), "alice": .found(1001), "ghost": .failed("no server")][$0] ?? .unknown
    },
    group: { ["operators": .found(27)][$0] ?? .unknown })
  return try PolicyReader(
    file: "policy.yaml", schema: schema, namesPaths: namesPaths, accounts: accounts
  ).load(bytes)
}

private func pattern(_ steps: PathPattern.Step...) -> PathPattern { PathPattern(steps) }

@Suite struct PolicyFileTests {
  @Test func `a policy grants and denies rights`() throws {
    let result = try policy(
      """
      # Who may see the house.
      version: 1
      rules:
        - users: [alice, 1000]
          groups: [operators]
          connect: true
          read: [/]
          deny-read: [/secrets, /users/*/password]
          act: ["*"]
          deny-act: ["transaction", test]
          write: [/lamps]
          deny-write: [/lamps/stage]
          administer: false
        - everyone: true
          connect: true
          read:
          - /public
          - "/a~1b/~0/~2/0"
      """)
    #expect(
      result
        == Policy([
          Rule(
            users: [1001, 1000], groups: [27], mayConnect: true, mayAdminister: false,
            read: [.whole],
            denyRead: [
              pattern(.key("secrets")), pattern(.key("users"), .any, .key("password")),
            ],
            act: [.all], denyAct: [.name("transaction"), .name("test")],
            write: [pattern(.key("lamps"))],
            denyWrite: [pattern(.key("lamps"), .key("stage"))]),
          Rule(
            isForEveryone: true, mayConnect: true,
            read: [
              pattern(.key("public")),
              pattern(.key("a/b"), .key("~"), .key("*"), .key("0")),
            ]),
        ]))
  }

  // MARK: Types

  /// A state with a field of each kind, and nested actions.
  private static let typed = Schema(
    state: .type("State"), action: .type("Action"),
    types: [
      "State": .structure([
        .init(1, "todos", .map(key: .integer, value: .type("Todo"))),
        .init(2, "users", .map(key: .text, value: .optional(.type("User")))),
        .init(3, "list", .array(.type("Todo"))), .init(4, "filter", .type("Filter")),
        .init(7, "notes", .value), .init(9, "count", .integer),
      ]),
      "Todo": .structure([.init(1, "title", .text), .init(2, "isDone", .bool)]),
      "User": .structure([.init(5, "password", .text), .init(6, "todos", .type("Todo"))]),
      "Filter": .enumeration([.init(0, "all"), .init(1, "named", [.init(0, "_0", .text)])]),
      "Action": .enumeration([
        .init(0, "reload"), .init(1, "todos", [.init(1, "_0", .type("TodoAction"))]),
        .init(2, "row", [.init(1, "_0", .integer), .init(2, "_1", .type("TodoAction"))]),
        .init(3, "filter", [.init(1, "_0", .type("Filter"))]),
        .init(4, "rename", [.init(1, "_0", .text)]),
      ]),
      "TodoAction": .enumeration([.init(0, "toggle", [.init(1, "_0", .integer)])]),
    ])

  private func typedPolicy(_ line: String) throws(PolicyError) -> Rule {
    let policy = try policy(
      "version: 1\nrules:\n- everyone: true\n  connect: true\n  \(line)", schema: Self.typed,
      namesPaths: false)
    return policy.rules[0]
  }

  static let typedPaths: [(String, [PathPattern])] = [
    ("/", [.whole]), ("/todos", [pattern(.key(1))]), ("/list", [pattern(.key(3))]),
    ("/todos/-7/title", [pattern(.key(1), .key(-7), .key(1))]),
    ("/users/7/password", [pattern(.key(2), .key("7"), .key(5))]),
    ("/users/*/todos/isDone", [pattern(.key(2), .any, .key(6), .key(2))]),
    ("/notes/a/7/*", [pattern(.key(7), .key("a"), .key("7"), .any)]),
    ("/*", [pattern(.any)]), ("/todos/*/*", [pattern(.key(1), .any, .any)]),
    (
      "/*/7",
      [pattern(.key(1), .key(7)), pattern(.key(2), .key("7")), pattern(.key(7), .key("7"))]
    ),
  ]

  @Test(arguments: typedPaths)
  func `a path of a typed state uses its names`(
    _ path: String, _ patterns: [PathPattern]
  ) throws {
    #expect(try typedPolicy("read: [\"\(path)\"]").read == patterns)
  }

  @Test(arguments: ["*", "reload", "todos", "todos.*", "todos.toggle", "row.toggle", "filter"])
  func `an action is named by its case and the case of the action it carries`(
    _ name: String
  ) throws {
    #expect(try typedPolicy("act: [\"\(name)\"]").act == [try #require(ActionPattern(name))])
  }

  static let badTyped: [(String, String)] = [
    (
      "read: [/todo]",
      "the state has no field \"todo\"; there are: todos, users, list, filter, notes, count. "
        + "Did you mean \"todos\"?"
    ),
    ("read: [/users/bob/key]", "/users/bob has no field \"key\"; there are: password, todos."),
    (
      "read: [/list/0]",
      "/list is an array, which is seen whole or not at all: end the path there"
    ),
    (
      "read: [/filter/1]",
      "/filter is an enumeration, which is seen whole or not at all: end the path there"
    ),
    ("read: [/count/a]", "/count has no parts, so there is no /count/a"),
    ("read: [/todos/one]", "the keys of /todos are integers, and \"one\" is none"),
    ("read: [/todos/07]", "the keys of /todos are integers, and \"07\" is none"),
    ("read: [/todos/*/*/a]", "no field of /todos/* has anything at /a"),
    (
      "deny-act: [todo]",
      "there is no action \"todo\"; there are: reload, todos, row, filter, rename. "
        + "Did you mean \"todos\"?"
    ),
    (
      "deny-act: [todos.togle]",
      "there is no action \"togle\" in \"todos\"; there are: toggle. Did you mean \"toggle\"?"
    ),
    ("deny-act: [reload.x]", "\"reload\" carries no action"),
    ("deny-act: [rename.*]", "\"rename\" carries no action"),
    (
      "write: [/todos]",
      "the actions of this daemon name no paths to write to: say which by \"act\""
    ),
  ]

  @Test(arguments: badTyped)
  func `an unknown name of the types is an error`(_ line: String, _ message: String) {
    #expect(throws: PolicyError("policy.yaml", 5, message)) { try typedPolicy(line) }
  }

  // MARK: Bad files

  static let good = """
    version: 1
    rules:
    - users: [alice]
      connect: true

    """

  /// A whole file, or the text after a good rule of four lines; then the line and the message.
  static let bad: [(String, Int, String)] = [
    ("", 1, "the file is empty"),
    ("# nothing\n", 1, "the file is empty"),
    ("- 1", 1, "a policy is made of keys and values, as in `version: …`"),
    ("version: 1\n", 1, "\"rules\" is missing"),
    ("rules: []", 1, "\"version\" is missing: write `version: 1`"),
    ("version: 2\nrules: []", 1, "this daemon reads \"version\" 1 only"),
    ("version: 1\nrules: []", 2, "no rule says `connect: true`, so nobody could connect"),
    ("version: 1\nrules:\n", 2, "\"rules\" is a list, as in `- everyone: true`, not nothing"),
    (
      "version: 1\nrule: []", 2,
      "a policy has no key \"rule\"; there are: version, rules. Did you mean \"rules\"?"
    ),
    ("version: 1\nrules: [a]", 2, "a rule is made of keys and values, as in `users: …`"),
    (
      "version: 1\nversion: 1", 2,
      "the key \"version\" is here a second time; the first is on line 1"
    ),
    ("version: 1\nrules: []\n---\nversion: 1", 3, "a second document begins; write one"),
    ("? [a]\n: b", 1, "a key must be a word, not a list or mapping"),
    (
      good + "  raed: [/]", 5,
      "a rule has no key \"raed\"; there are: users, groups, everyone, connect, administer, read, "
        + "deny-read, act, deny-act, write, deny-write. Did you mean \"read\"?"
    ),
    (
      good + "- connect: true", 5,
      "the rule is about nobody: say for whom it is by users, groups, or `everyone: true`"
    ),
    (good + "- everyone: yes", 5, "\"everyone\" is true or false, not \"yes\""),
    (good + "  administer: [true]", 5, "\"administer\" is true or false, not a list"),
    (good + "- users: alice", 5, "\"users\" is a list, as in `[alice, 1000]`, not \"alice\""),
    (
      good + "- groups:\n    a: b", 6,
      "\"groups\" is a list, as in `[operators, 27]`, not keys and values"
    ),
    (good + "- users: [[alice]]", 5, "the name or number of a user must stand here, not a list"),
    (good + "- users: [ghost]", 5, "whether there is a user \"ghost\" cannot be told: no server"),
    (good + "- users: [010]", 5, "\"010\" is no number of a user: 0 to 4294967294"),
    (good + "- groups: [4294967295]", 5, "\"4294967295\" is no number of a group: 0 to 4294967294"),
    (good + "  read: [public]", 5, "\"public\" is no path: a path begins with /"),
    (good + "  read: ['']", 5, "\"\" is no path: a path begins with /"),
    (good + "  deny-read: [/secrets/]", 5, "\"/secrets/\" has an empty key: one / too many"),
    (good + "  read: [//a]", 5, "\"//a\" has an empty key: one / too many"),
    (
      good + "  deny-read: [/user*]", 5,
      "in \"/user*\", a star stands beside other characters: it is a whole key, or written ~2 where "
        + "a star is meant"
    ),
    (good + "  read: [/~x]", 5, "in \"/~x\", ~ must be written ~0 (and / is ~1, * is ~2)"),
    (good + "  read: [/a~]", 5, "in \"/a~\", ~ must be written ~0 (and / is ~1, * is ~2)"),
    (
      good + "  act: [set*]", 5,
      "\"set*\" is no name of an action, nor `*` or a name with `.*` behind it"
    ),
    (
      good + "  deny-act: [sett]", 5,
      "there is no action \"sett\"; there are: set, merge, remove, increment, append, insert, move, "
        + "copy, test, transaction, replace. Did you mean \"set\"?"
    ),
    (
      good + "  act: [*]", 5,
      "aliases are not for policies; a text that begins with a star must be in quotes: \"*\""
    ),
    (
      good + "  act: *all", 5,
      "aliases are not for policies; a text that begins with a star must be in quotes: \"*\""
    ),
    (
      good + "  act: &all [set]", 5,
      "anchors are not for policies; a text that begins with & must be in quotes"
    ),
    (
      good + "  act: !!set [set]", 5,
      "tags are not for policies; a text that begins with ! must be in quotes"
    ),
    (
      good + "  read: [/a", 6,
      "it is not YAML: did not find expected ',' or ']', while parsing a flow sequence"
    ),
    (
      good + "\tread: [/a]", 5,
      "it is not YAML: found a tab character that violates indentation, while scanning a plain scalar"
    ),
    (String(repeating: "[", count: 100_000), 1, "it nests deeper than 16 levels"),
    (String(repeating: "- ", count: 100_000), 1, "it nests deeper than 16 levels"),
  ]

  @Test(arguments: bad)
  func `each error in a file is reported with its line`(
    _ text: String, _ line: Int, _ message: String
  ) {
    #expect(throws: PolicyError("policy.yaml", line, message)) { try policy(text) }
  }

  static let unknown: [(String, Set<UInt64>, Set<UInt64>, String)] = [
    (
      "- users:\n  - root\n  - alcie", [0], [],
      "policy.yaml:7: there is no user \"alcie\" on this machine, so the rule is not about it: create it, "
        + "or write one that `getent passwd` lists, or a number"
    ),
    (
      "- groups: [alice]", [], [],
      "policy.yaml:5: there is no group \"alice\" on this machine, so the rule is not about it: create "
        + "it, or write one that `getent group` lists, or a number"
    ),
    (
      "- users: [\"root\\0\"]", [], [],
      "policy.yaml:5: there is no user \"root\u{fffd}\" on this machine, so the rule is not about it: "
        + "create it, or write one that `getent passwd` lists, or a number"
    ),
  ]

  @Test(arguments: unknown)
  func `a name without an account matches no user, and is reported`(
    _ rule: String, _ users: Set<UInt64>, _ groups: Set<UInt64>, _ note: String
  ) throws {
    let loaded = try load(Array((Self.good + rule).utf8))
    #expect(loaded.policy.rules.count == 2)
    #expect(loaded.policy.rules.last?.users == users)
    #expect(loaded.policy.rules.last?.groups == groups)
    #expect(loaded.policy.rules.last?.isForEveryone == false)
    #expect(loaded.notes.map(\.description) == [note])
  }

  @Test func `a byte order mark is reported`() {
    let text = Array(Self.good.utf8)
    for (mark, message) in [
      (
        [0xef, 0xbb, 0xbf],
        "the file begins with a byte order mark (EF BB BF): save it as UTF-8 without one"
      ),
      (
        [0xff, 0xfe],
        "the file begins with a byte order mark of UTF-16: save it as UTF-8 without one"
      ),
      (
        [0xfe, 0xff],
        "the file begins with a byte order mark of UTF-16: save it as UTF-8 without one"
      ),
    ] as [([UInt8], String)] {
      #expect(throws: PolicyError("policy.yaml", 1, message)) { try policy(mark + text) }
    }
  }

  @Test func `each rule has its line`() throws {
    let loaded = try load(Array((Self.good + "- everyone: true\n\n\n- groups: [7]").utf8))
    #expect(loaded.policy.source == .file("policy.yaml", lines: [3, 5, 8]))
  }

  // MARK: Many paths

  /// The seconds to read a policy and to compute a user's rights.
  private func seconds(paths count: Int) throws -> Double {
    let paths = (0..<count).map { "/key\($0)" }.joined(separator: ", ")
    let bytes = Array("\(Self.good)  read: [/]\n  deny-read: [\(paths)]\n".utf8)
    let start = ContinuousClock.now
    let rights = try policy(bytes).rights(uid: 1001, gid: 1001)
    let time = ContinuousClock.now - start
    #expect(!rights.mayRead(["key1", "1"]) && rights.mayRead(["key", "1"]))
    return Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18
  }

  @Test func `the time for many paths is linear in their number`() throws {
    _ = try seconds(paths: 100)
    // Four times the paths take four times as long; a comparison of each pair would take sixteen
    // times, each time.
    let ratios = try (0..<5).map { _ in
      let few = try seconds(paths: 2000)
      return try seconds(paths: 8000) / few
    }
    #expect(ratios.contains { $0 < 10 }, "\(ratios)")
  }

  @Test func `the time for many action names is linear in their number`() {
    func seconds(_ count: Int) -> Double {
      let names = (0..<count).map { ActionPattern.name("part\($0 % 100).action\($0)") }
      let start = ContinuousClock.now
      let rights = Policy([Rule(isForEveryone: true, act: names, denyAct: [.name("part7.action7")])]
      )
      .rights(uid: 1, gid: 1)
      let time = ContinuousClock.now - start
      #expect(rights.mayAct("part8.action8") && !rights.mayAct("part7.action7"))
      return Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18
    }
    _ = seconds(100)
    let ratios = (0..<5).map { _ in
      let few = seconds(1000)
      return seconds(4000) / few
    }
    #expect(ratios.contains { $0 < 10 }, "\(ratios)")
  }

  @Test func `bytes that are not UTF-8 are an error on their line`() {
    let reader = PolicyReader(file: "p", schema: DocumentFeature.schema, namesPaths: true)
    for bytes in [[0xff], [0xff, 0xfe, 0x61, 0], [0xc3, 0x28], [0x00], [0xed, 0xa0, 0x80]]
      as [[UInt8]]
    {
      #expect(throws: PolicyError.self) { try reader.load(Array("version: 1\n".utf8) + bytes) }
    }
    let error = #expect(throws: PolicyError.self) {
      try reader.load(Array("version: 1\n\n".utf8) + [0xff])
    }
    #expect(error?.description == "p:3: it is not YAML: invalid leading UTF-8 octet")
  }

  @Test func `paths that expand to too many places are refused`() {
    let paths = (0..<6).flatMap { place in
      (0..<8).map { key in
        (0..<6).map { $0 == place ? "/k\(key)" : "/*" }.joined()
      }
    }
    #expect(
      throws: PolicyError(
        "policy.yaml", 3,
        "the paths of all rules tell apart 10000 places or more, for stars beside keys multiply: "
          + "write fewer")
    ) {
      try policy(Self.good + "  read: [\(paths.joined(separator: ", "))]")
    }
  }

  // MARK: Any bytes

  @Test func `any bytes are a policy or an error`() {
    var random = SplitMix64(7)
    func below(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
    let words = [
      "version: 1\n", "rules:\n", "- ", "  ", "\n", "users: ", "[", "]", "{", "}", ", ", "alice",
      "everyone: true\n", "connect: true\n", "read: ", "/", "*", "~", "&a ", "*a", "!!x ", "\"",
      "'", "|\n", ">\n", "? ", ": ", "---\n", "...\n", "%YAML 1.1\n", "#", "\t", "\u{feff}", "é",
      "act: ", "deny-act: ", "set", ".*", "0", "1000",
    ]
    let file = Self.good + "  read: [/a, \"/*/b\"]\n  act: [set, \"*\"]\n"
    var read = 0
    for round in 0..<3000 {
      var bytes: [UInt8] = []
      switch round % 3 {
      case 0: bytes = (0..<below(60)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      case 1: for _ in 0..<below(30) { bytes += words[below(words.count)].utf8 }
      default:
        bytes = Array(file.utf8)
        for _ in 0...below(3) {
          let place = below(bytes.count)
          switch below(3) {
          case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
          case 1: bytes.remove(at: place)
          default: bytes.insert(contentsOf: words[below(words.count)].utf8, at: place)
          }
        }
      }
      if let policy = try? policy(bytes) {
        read += 1
        _ = policy.rights(uid: 1001, gid: 27)
      }
    }
    #expect(read > 5)
  }

  // MARK: Files and accounts

  /// A file in a folder of its own, which is removed after the test.
  private func withFile(
    _ text: String, mode: mode_t = 0o600, _ body: (String) throws -> Void
  ) throws {
    var template = Array("/tmp/lockstep-policy-XXXXXX".utf8CString)
    let folder = try #require(mkdtemp(&template).map { String(cString: $0) })
    let path = folder + "/policy.yaml"
    defer {
      unlink(path)
      rmdir(folder)
    }
    let descriptor = open(path, O_WRONLY | O_CREAT, 0o600)
    try #require(descriptor >= 0)
    #expect(write(descriptor, text, text.utf8.count) == text.utf8.count)
    fchmod(descriptor, mode)
    close(descriptor)
    try body(path)
  }

  @Test func `a file is read with the names of the feature and of the machine`() throws {
    let text = "version: 1\nrules:\n- users: [root]\n  connect: true\n  write: [/a]\n"
    try withFile(text, mode: 0o644) { path in
      let policy = try PolicyFile.read(path, for: DocumentFeature.self)
      #expect(
        policy == Policy([Rule(users: [0], mayConnect: true, write: [pattern(.key("a"))])]))
    }
    try withFile("version: 1\nrules:\n- users: [no-such-user]\n  connect: true\n") { path in
      let loaded = try PolicyFile.load(path, for: DocumentFeature.self)
      #expect(loaded.policy == Policy([Rule(mayConnect: true)]))
      #expect(
        loaded.notes.first?.description.hasPrefix(
          "\(path):3: there is no user \"no-such-user\" on this machine") == true)
    }
  }

  @Test func `a place that may be written but not read is reported`() throws {
    let text = """
      version: 1
      rules:
      - everyone: true
        connect: true
        read: [/public, /rooms/*/name, /ok]
        act: ["*"]
      - users: [root]
        write: [/public/a, /rooms, /rooms/1, /rooms/1/other, /inbox, "/*/x", /ok]
      """
    try withFile(text) { path in
      let loaded = try PolicyFile.load(path, for: DocumentFeature.self)
      let notes = ["/rooms/1/other", "/inbox"].map {
        "\(path):7: write \($0) has no effect, for no rule lets anybody read it: what is written "
          + "tells of what was there before. Add it to \"read\" too"
      }
      #expect(loaded.notes.map(\.description) == notes)
    }
  }

  @Test func `a file that other users can write is refused`() throws {
    for mode in [0o620, 0o602, 0o666] as [mode_t] {
      try withFile(Self.good, mode: mode) { path in
        let expected = PolicyError(
          path, nil,
          "others than its owner may write to it (mode \(String(mode, radix: 8))): run "
            + "`chmod go-w \(path)`")
        #expect(throws: expected) { try PolicyFile.read(path, for: DocumentFeature.self) }
      }
    }
    var status = stat()
    status.st_mode = S_IFREG | 0o600
    status.st_uid = 1001
    let expected = PolicyError(
      "p", nil, "it belongs to user 1001, who could change it: run `chown 1000 p`")
    #expect(throws: expected) { try PolicyFile.check(status, "p", daemon: 1000) }
    for owner in [0, 1000] as [uid_t] {
      status.st_uid = owner
      #expect(throws: Never.self) { try PolicyFile.check(status, "p", daemon: 1000) }
    }
  }

  @Test func `a path that is no file, is missing or is too large is an error`() throws {
    let folder = #expect(throws: PolicyError.self) {
      try PolicyFile.read("/tmp", for: DocumentFeature.self)
    }
    #expect(folder?.description == "/tmp: this is not a file")
    let absent = #expect(throws: PolicyError.self) {
      try PolicyFile.read("/no/such", for: DocumentFeature.self)
    }
    #expect(
      absent?.description
        == "/no/such: it cannot be read: No such file or directory. Make it (lockstepd.service(8) says "
        + "what is in it), or give another path with --policy")
    try withFile(String(repeating: "#", count: PolicyFile.sizeLimit + 1)) { path in
      #expect(throws: PolicyError(path, nil, "it has more than 1048576 bytes")) {
        try PolicyFile.read(path, for: DocumentFeature.self)
      }
    }
  }

  @Test func `accounts are found by their whole names only`() {
    #expect(Accounts.system.user("root") == .found(0))
    #expect(Accounts.system.group("root") == .found(0))
    #expect(Accounts.system.user("root\0") == .unknown)
    #expect(Accounts.system.user("") == .unknown)
    #expect(Accounts.system.group(String(repeating: "x", count: 10_000)) == .unknown)
  }

  // MARK: Kept policies

  /// Keeps a policy in a new directory, and reads it as the next process does.
  private func kept(_ text: String) throws -> (loaded: LoadedPolicy, kept: LoadedPolicy) {
    var template = Array("/tmp/lockstep-policy-XXXXXX".utf8CString)
    let directory = try #require(mkdtemp(&template).map { String(cString: $0) })
    defer {
      unlink(KeptPolicy.path(in: directory))
      rmdir(directory)
    }
    let loaded = try load(Array(text.utf8))
    try KeptPolicy.keep(loaded, in: directory)
    var status = stat()
    #expect(stat(KeptPolicy.path(in: directory), &status) == 0 && status.st_mode & 0o777 == 0o600)
    return (loaded, try KeptPolicy.read(in: directory, for: DocumentFeature.self))
  }

  @Test func `a kept policy is read back, with the former accounts`() throws {
    for ending in ["", "\n", "\n# the end", "\n..."] {
      // This machine has no alice and no group of operators.
      let (loaded, kept) = try kept(
        "version: 1\nrules:\n- users: [alice, nobody-at-all, 7]\n  groups: [operators]\n"
          + "  connect: true\n  read: [/a, \"/#\"]\(ending)")
      #expect(kept.policy == loaded.policy)
      #expect(kept.policy.rules[0].users == [1001, 7] && kept.policy.rules[0].groups == [27])
      #expect(kept.notes.count == 1)
      guard case .file(_, let lines) = kept.policy.source else {
        Issue.record("it comes from no file")
        return
      }
      #expect(lines == [3])
    }
  }

  @Test func `a missing kept policy is an error`() {
    #expect(throws: PolicyError.self) {
      try KeptPolicy.read(in: "/no/such", for: DocumentFeature.self)
    }
  }
}
