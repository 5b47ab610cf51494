import CBOR
import Values
import Wire

/// A request that is answered at the turn's end, after the patches.
enum Request: Sendable {
  case subscribe(number: UInt64, Path, Position?)
  /// A subscription that is refused without examining its path.
  case refuse(subscription: UInt64, ServerMessage.Reason)
  /// A query that is refused because it is too long.
  case refuseQuery(number: UInt64, bytes: Int)
  case unsubscribe(number: UInt64)
  case ping(UInt64)
  case digest(subscription: UInt64)
  case query(number: UInt64, String, [String])
}

extension Request {
  /// The request that an item is; nil for messages of other kinds.
  static func read(_ item: UnsafeRawBufferPointer, _ limits: Limits) throws(WireError) -> Request? {
    if item.count > longest(limits), let refused = try refused(item) { return refused }
    switch try ClientMessage(item) {
    case .hello: throw WireError(.outOfOrder, "hello was said already")
    case .subscribe(let number, let path, let position):
      let fits = path.keys.count <= limits.pathKeys && path.byteCount <= limits.pathBytes
      return fits
        ? .subscribe(number: number, path, position) : .refuse(subscription: number, .limit)
    case .unsubscribe(let number): return .unsubscribe(number: number)
    case .ping(let value): return .ping(value)
    case .digestRequest(let number): return .digest(subscription: number)
    case .query(let number, let name, let arguments):
      return arguments.count <= mostArguments
        ? .query(number: number, name, arguments) : .refuseQuery(number: number, bytes: item.count)
    case .goodbye, .action: return nil
    }
  }

  /// The most arguments of a query; no report has more than five.
  static var mostArguments: Int { 16 }

  /// The most bytes of a request; no subscription or query within the limits has more.
  static func longest(_ limits: Limits) -> Int { 1024 + limits.pathBytes + 16 * limits.pathKeys }

  /// The refusal of a subscription or query that is too long, without storing its contents; nil for
  /// other messages.
  private static func refused(_ item: UnsafeRawBufferPointer) throws(WireError) -> Request? {
    var decoder = CBORDecoder(item)
    let head = try MessageHead(from: &decoder)
    guard head.type == .subscribe || head.type == .query else { return nil }
    do throws(CBORError) {
      let number = try decoder.unsigned()
      var whole = CBORDecoder(item)
      try whole.skip()
      guard whole.isAtEnd else {
        throw CBORError(.trailingBytes(whole.remaining), at: whole.offset)
      }
      return head.type == .subscribe
        ? .refuse(subscription: number, .limit) : .refuseQuery(number: number, bytes: item.count)
    } catch {
      throw .malformed(error)
    }
  }

  /// The least work of its answer, in units.
  var work: Int {
    switch self {
    case .ping, .unsubscribe, .refuse: 2
    case .subscribe(_, let path, _): Self.subscribeWork + Self.pathWork(path)
    case .digest: 20
    case .refuseQuery: 5
    case .query(_, ReportName.status.rawValue, _): 100
    case .query: 20
    }
  }

  private static var subscribeWork: Int { 10 }

  /// The work to leave the scope of a path: less than to subscribe to it, so that no more begin in a turn
  /// than leave.
  static func leaveWork(_ path: Path) -> Int { subscribeWork - 2 + pathWork(path) }

  /// The work that a path takes because it has many keys: each is a node of the tree of scopes.
  static func pathWork(_ path: Path) -> Int { max(0, path.keys.count - 4) / 2 }

  /// About how many bytes of memory it takes while it waits.
  var memory: Int {
    switch self {
    case .subscribe(_, let path, _): 128 + path.keys.count * 40 + path.byteCount
    case .query(_, let name, let arguments):
      128 + name.utf8.count + arguments.reduce(0) { $0 + 40 + $1.utf8.count }
    case .refuse, .refuseQuery, .unsubscribe, .ping, .digest: 128
    }
  }

  /// The request as a message, for the next process to read again; nil for a refused one.
  var message: ClientMessage? {
    switch self {
    case .subscribe(let number, let path, let position):
      .subscribe(subscription: number, path, position)
    case .refuse, .refuseQuery: nil
    case .unsubscribe(let number): .unsubscribe(subscription: number)
    case .ping(let value): .ping(value)
    case .digest(let number): .digestRequest(subscription: number)
    case .query(let number, let name, let arguments):
      .query(number: number, name, arguments: arguments)
    }
  }
}
