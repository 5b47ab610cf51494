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
/// (`Server.grantWork`), so that a flood of requests delays nobody else by more than those and one
/// answer, or one page of a report.
struct RequestQueue: Sendable {
  private var requests: [Request] = []
  /// Requests before this index have been answered.
  private var start = 0
  /// The report of which pages are still to be sent. It comes before `requests`.
  var report: RunningReport?
  /// The work that `requests` are at least, in units.
  private var work = 0
  /// What may be done for the connection in this turn.
  var grant = 0
  /// Work that was done beyond what was granted: the last answer was larger.
  var debt = 0
  /// Whether the connection waits in its user's line to be answered.
  var isInLine = false

  /// How many requests wait.
  var count: Int { requests.count - start }
  var isEmpty: Bool { start == requests.count && report == nil }

  /// The work that waits, as far as it is known.
  var need: Int { debt + work + (report == nil ? 0 : Self.pageWork) }

  /// About what a page is.
  static var pageWork: Int { 1000 }

  mutating func append(_ request: Request) {
    requests.append(request)
    work += request.work
  }

  /// The request that has waited longest.
  mutating func next() -> Request? {
    guard start < requests.count else { return nil }
    let request = requests[start]
    work -= request.work
    start += 1
    if start == requests.count {
      requests.removeAll(keepingCapacity: start <= 64)
      start = 0
    }
    return request
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
    case .query(_, "status", _): 100
    case .query: 20
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
