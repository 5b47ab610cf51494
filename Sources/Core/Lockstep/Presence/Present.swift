public import CBOR
public import Values

/// The present clients: the entries of each client's session, removed when the session ends.
/// `Presence` changes it.
///
/// It travels as a map of maps: session, then key, then entry. A session's only entry is usually
/// under the empty key.
public struct Present<Entry: Synchronizable>: Sendable, Equatable {
  /// The entries by session and key. Invariant: every session here has an entry.
  public private(set) var sessions: SyncMap<Int64, SyncMap<String, Entry>> = [:]

  /// No entries.
  public init() {}

  /// Whether no session has an entry. O(1).
  public var isEmpty: Bool { sessions.isEmpty }

  /// The number of sessions that have entries. O(1).
  public var sessionCount: Int { sessions.count }

  /// How many entries a session has. O(log n).
  public func entryCount(of session: UInt64) -> Int {
    Self.place(of: session).flatMap { sessions[$0]?.count } ?? 0
  }

  /// Whether a session has any entry. O(log n).
  public func contains(_ session: UInt64) -> Bool { entryCount(of: session) > 0 }

  /// The entry of a session, or one of its several entries. O(log n).
  public subscript(session: UInt64, key: String = "") -> Entry? {
    get { Self.place(of: session).flatMap { sessions[$0]?[key] } }
    set {
      guard let place = Self.place(of: session) else { return }
      if let newValue {
        let none = SyncMap<String, Entry>(seed: sessions.seed)
        sessions[place, default: none][key] = newValue
      } else {
        sessions[place]?[key] = nil
        if sessions[place]?.isEmpty == true { sessions[place] = nil }
      }
    }
  }

  /// Remove all entries of a session. Its client can enter again. O(log n).
  public mutating func remove(_ session: UInt64) {
    if let place = Self.place(of: session) { sessions[place] = nil }
  }

  /// The session as a key of the map, whose keys end at 2^63 - 1; nil for larger numbers, and for
  /// 0, which is no session.
  static func place(of session: UInt64) -> Int64? {
    session == 0 ? nil : Int64(exactly: session)
  }
}

extension Present: Sequence {
  public typealias Element = (session: UInt64, key: String, entry: Entry)

  /// Iterates over the entries, in an order that is the same in every mirror.
  public func makeIterator() -> Iterator { Iterator(sessions.makeIterator()) }

  /// The iterator over the entries.
  public struct Iterator: IteratorProtocol {
    private var sessions: SyncMap<Int64, SyncMap<String, Entry>>.Iterator
    private var entries: (session: UInt64, rest: SyncMap<String, Entry>.Iterator)?

    init(_ sessions: SyncMap<Int64, SyncMap<String, Entry>>.Iterator) { self.sessions = sessions }

    public mutating func next() -> Element? {
      while true {
        if let session = entries?.session, let (key, entry) = entries?.rest.next() {
          return (session, key, entry)
        }
        guard let (session, rest) = sessions.next() else { return nil }
        entries = (UInt64(bitPattern: session), rest.makeIterator())
      }
    }
  }
}

extension Present: Synchronizable {
  public func isSame(as other: Present) -> Bool { sessions.isSame(as: other.sessions) }

  public func encode(into encoder: inout CBOREncoder) { sessions.encode(into: &encoder) }

  public init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    sessions = try SyncMap(from: &decoder, seed: seed)
  }

  public func encodeDifference(from old: Present, into encoder: inout CBOREncoder) -> Bool {
    sessions.encodeDifference(from: old.sessions, into: &encoder)
  }

  public mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    try sessions.apply(patch: &decoder, seed: seed)
  }

  public func digest(seed: HashSeed) -> UInt64 { sessions.digest(seed: seed) }

  public mutating func adopt(seed: HashSeed) { sessions.adopt(seed: seed) }

  public static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    SyncMap<Int64, SyncMap<String, Entry>>.schemaKind(in: &schema)
  }

  public static func visit<V: PartVisitor>(
    _ new: Present?, _ old: Present?, at path: Path, from depth: Int, _ visitor: inout V
  ) {
    guard depth < path.keys.count else { return visitor.visit(new, old) }
    SyncMap.visit(new?.sessions, old?.sessions, at: path, from: depth, &visitor)
  }
}
