public import CBOR
public import Values

extension Presence {
  /// The actions that change presence.
  public enum Action: Sendable {
    /// Adds this entry of the sender, or replaces its entry under the key.
    case enter(Entry, key: String = "")
    /// Replaces the sender's entry under the key. Rejected if it has none.
    case update(Entry, key: String = "")
    /// Removes the sender's entry under the key.
    case leave(key: String)
    /// Removes the entries of a session that has ended. Only the daemon sends it.
    case session(SessionEvent)

    /// Removes the sender's entry under the empty key.
    public static var leave: Action { .leave(key: "") }
  }
}

extension Presence.Action: Equatable where Entry: Equatable {}

// The code that `@Action` would generate, if this module could use it.

extension Presence.Action: SynchronizableAction, SynchronizableScalar {
  public var name: String {
    switch self {
    case .enter: "enter"
    case .update: "update"
    case .leave: "leave"
    case .session: "session"
    }
  }

  public func isSame(as other: Self) -> Bool {
    switch (self, other) {
    case (.enter(let first, let key), .enter(let second, let otherKey)),
      (.update(let first, let key), .update(let second, let otherKey)):
      first.isSame(as: second) && key.isSame(as: otherKey)
    case (.leave(let key), .leave(let otherKey)): key.isSame(as: otherKey)
    case (.session(let first), .session(let second)): first == second
    default: false
    }
  }

  public func encode(into encoder: inout CBOREncoder) {
    switch self {
    case .enter(let entry, let key): encode(0, entry, key, into: &encoder)
    case .update(let entry, let key): encode(1, entry, key, into: &encoder)
    case .leave(let key):
      encoder.array(2)
      encoder.encode(2)
      encoder.encode(key)
    case .session(let news):
      encoder.array(2)
      encoder.encode(3)
      news.encode(into: &encoder)
    }
  }

  private func encode(
    _ number: Int, _ entry: Entry, _ key: String, into encoder: inout CBOREncoder
  ) {
    encoder.array(3)
    encoder.encode(number)
    entry.encode(into: &encoder)
    encoder.encode(key)
  }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    var item = try CaseDecoder(&decoder)
    switch item.number {
    case 0:
      let entry: Entry = try item.field("Presence.enter", "_0", from: &decoder, seed: seed)
      self = .enter(entry, key: try item.field(default: "", from: &decoder, seed: seed))
    case 1:
      let entry: Entry = try item.field("Presence.update", "_0", from: &decoder, seed: seed)
      self = .update(entry, key: try item.field(default: "", from: &decoder, seed: seed))
    case 2: self = .leave(key: try item.field(default: "", from: &decoder, seed: seed))
    case 3:
      self = .session(try item.field("Presence.session", "_0", from: &decoder, seed: seed))
    default: throw item.unknown
    }
    try item.finish(&decoder)
  }

  public mutating func adopt(seed: HashSeed) {
    switch self {
    case .enter(var entry, let key):
      entry.adopt(seed: seed)
      self = .enter(entry, key: key)
    case .update(var entry, let key):
      entry.adopt(seed: seed)
      self = .update(entry, key: key)
    case .leave, .session: break
    }
  }

  public static var holdsCollections: Bool { Entry.holdsCollections }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    schema.kind(of: Self.self, named: "Presence.Action") { schema in
      let entry = Schema.Field(1, "_0", Entry.schemaKind(in: &schema))
      let key = Schema.Kind.text
      let news = Schema.Field(1, "_0", SessionEvent.schemaKind(in: &schema))
      return .enumeration([
        .init(0, "enter", [entry, .init(2, "key", key, hasDefault: true)]),
        .init(1, "update", [entry, .init(2, "key", key, hasDefault: true)]),
        .init(2, "leave", [.init(1, "key", key, hasDefault: true)]),
        .init(3, "session", [news]),
      ])
    }
  }
}

extension Presence.Action: CasePathable {
  /// The paths of the cases.
  public struct AllCasePaths: Sendable {
    /// An entry, and its key.
    public var enter: CasePath<Presence.Action, (Entry, key: String)> {
      CasePath(
        embed: { .enter($0.0, key: $0.key) },
        extract: { if case .enter(let entry, let key) = $0 { (entry, key) } else { nil } })
    }

    /// An entry, and its key.
    public var update: CasePath<Presence.Action, (Entry, key: String)> {
      CasePath(
        embed: { .update($0.0, key: $0.key) },
        extract: { if case .update(let entry, let key) = $0 { (entry, key) } else { nil } })
    }

    /// A key.
    public var leave: CasePath<Presence.Action, String> {
      CasePath(
        embed: { .leave(key: $0) },
        extract: { if case .leave(let key) = $0 { key } else { nil } })
    }

    /// A session event from the daemon.
    public var session: CasePath<Presence.Action, SessionEvent> {
      CasePath(
        embed: { .session($0) },
        extract: { if case .session(let news) = $0 { news } else { nil } })
    }
  }

  public static var allCasePaths: AllCasePaths { AllCasePaths() }
}
