import CBOR
import Values
import Wire

/// A request that is answered at the turn's end, behind the patches.
enum Request: Sendable {
  case subscribe(number: UInt64, Path, Position?)
  /// A subscription that is refused without a look at its path.
  case refuse(subscription: UInt64, ServerMessage.Reason)
  /// A query that is too long to be looked at.
  case refuseQuery(number: UInt64, bytes: Int)
  case unsubscribe(number: UInt64)
  case ping(UInt64)
  case digest(subscription: UInt64)
  case query(number: UInt64, String, [String])
}

/// What one connection has asked and has not been told: answered in order, some in each turn.
///
/// Work is counted in units of about a microsecond. A turn has so many of them
/// (`Limits.requestWorkPerTurn`), shared by the users that ask and by the connections of each
/// (`Server.grantWork`), so that a flood of requests delays other clients by no more than those and
/// one answer, or one page of a report.
struct RequestQueue: Sendable {
  private var requests: [Request] = []
  /// Requests before this index have been answered.
  private var start = 0
  /// The report of which pages are still to be sent. It comes before `requests`.
  var report: RunningReport?
  /// The work that `requests` are at least, in units.
  private var work = 0
  /// About how many bytes of memory `requests` take.
  private var bytes = 0
  /// What may be done for the connection in this turn.
  var grant = 0
  /// Work that was done beyond what was granted: the last answer was larger.
  var debt = 0
  /// Whether the connection waits in its user's line to be answered.
  var isInLine = false

  /// How many requests wait.
  var count: Int { requests.count - start }

  /// Whether nothing more should be read before some have been answered.
  func isFull(_ limits: Limits) -> Bool {
    count >= limits.requestsPerTurn || bytes >= Self.mostBytes
  }

  /// Whether more may be read.
  func hasRoom(_ limits: Limits) -> Bool {
    2 * count <= limits.requestsPerTurn && 2 * bytes <= Self.mostBytes
  }

  private static var mostBytes: Int { 64 << 10 }
  var isEmpty: Bool { start == requests.count && report == nil }

  /// The work that waits, as far as it is known.
  var need: Int { debt + work + (report == nil ? 0 : Self.pageWork) }

  /// About what a page is.
  static var pageWork: Int { 1000 }

  mutating func append(_ request: Request) {
    requests.append(request)
    work += request.work
    bytes += request.memory
  }

  /// Whether what is answered next takes no more than it says.
  var isNextSmall: Bool {
    guard report == nil, start < requests.count else { return false }
    return switch requests[start] {
    case .ping, .unsubscribe, .refuse, .refuseQuery: true
    case .subscribe, .digest, .query: false
    }
  }

  /// The request that has waited longest.
  mutating func next() -> Request? {
    guard start < requests.count else { return nil }
    let request = requests[start]
    work -= request.work
    bytes -= request.memory
    start += 1
    if start == requests.count {
      requests.removeAll(keepingCapacity: start <= 64)
      start = 0
    }
    return request
  }

  /// The requests that are refused, taken from those that wait.
  mutating func takeRefused() -> [Request] {
    let waiting = requests[start...]
    let refused = waiting.filter { $0.message == nil }
    if refused.isEmpty { return [] }
    let others = waiting.filter { $0.message != nil }
    (requests, start) = (others, 0)
    work = others.reduce(0) { $0 + $1.work }
    bytes = others.reduce(0) { $0 + $1.memory }
    return refused
  }

  /// The requests that wait, as frames for the next process to read again.
  var unanswered: [UInt8] {
    var encoder = CBOREncoder()
    for message in requests[start...].lazy.compactMap(\.message) {
      Frame.append(to: &encoder) { message.encode(into: &$0) }
    }
    return encoder.bytes
  }
}

extension Request {
  /// The work that its answer is at least, in units.
  var work: Int {
    switch self {
    case .ping, .unsubscribe, .refuse: 2
    case .subscribe: 10
    case .digest: 20
    case .refuseQuery: 5
    case .query(_, ReportName.status.rawValue, _): 100
    case .query: 20
    }
  }

  /// About how many bytes of memory it takes while it waits.
  var memory: Int {
    switch self {
    case .subscribe(_, let path, _): 128 + path.keys.count * 40 + path.byteCount
    case .query(_, let name, let arguments):
      128 + name.utf8.count + arguments.reduce(0) { $0 + 40 + $1.utf8.count }
    case .refuse, .refuseQuery, .unsubscribe, .ping, .digest: 128
    }
  }

  /// The request as it came, for the next process to read it again; nil for one that is refused.
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
