import CBOR
import Wire

/// The unanswered requests of one connection: answered in order, some in each turn.
///
/// Work is counted in units of about a microsecond. A turn has a quota of them
/// (`Limits.requestWorkPerTurn`), shared by the users that ask and by the connections of each
/// (`Server.grantWork`), so that a flood of requests delays other clients by no more than the quota
/// and one answer, or one page of a report.
struct RequestQueue: Sendable {
  private var requests: [Request] = []
  /// Requests before this index have been answered.
  private var start = 0
  private var boxedReport = Boxed<RunningReport>()
  /// The least work to answer `requests`, in units.
  private var work = 0
  /// About how many bytes of memory `requests` take.
  private var bytes = 0
  /// The work that may be done for the connection in this turn.
  var grant = 0
  /// Work that was done beyond the grant, because the last answer was larger.
  var debt = 0
  /// Whether the connection is in its user's queue to be answered.
  var isInLine = false
  /// Whether the next request is for a digest that is being computed beside the loop.
  var isWaitingForDigest = false
  /// How often it has waited for one.
  private var digestTries: UInt8 = 0

  /// The report with pages still to be sent. It comes before `requests`.
  var report: RunningReport? {
    get { boxedReport.value }
    set { boxedReport.value = newValue }
  }

  /// Whether there is one: without a copy of it.
  var hasReport: Bool { !boxedReport.isEmpty }

  /// The number of requests that wait.
  var count: Int { requests.count - start }

  /// Whether reading should pause until some requests have been answered.
  func isFull(_ limits: Limits) -> Bool {
    count >= limits.requestsPerTurn || bytes >= Self.mostBytes
  }

  /// Whether reading may resume.
  func hasRoom(_ limits: Limits) -> Bool {
    2 * count <= limits.requestsPerTurn && 2 * bytes <= Self.mostBytes
  }

  private static var mostBytes: Int { 64 << 10 }
  var isEmpty: Bool { start == requests.count && !hasReport }

  /// The work that is known to wait.
  var need: Int { debt + work + (hasReport ? Self.pageWork : 0) }

  /// About the work of a page.
  static var pageWork: Int { 1000 }

  mutating func append(_ request: Request) {
    requests.append(request)
    work += request.work
    bytes += request.memory
  }

  /// Whether answering the next request takes no more than its `work`. To leave the scope of a long path
  /// takes more.
  var isNextSmall: Bool {
    guard !hasReport, start < requests.count else { return false }
    return switch requests[start] {
    case .ping, .refuse, .refuseQuery: true
    case .subscribe, .unsubscribe, .digest, .query: false
    }
  }

  /// What a digest is asked of.
  enum DigestSubject {
    case subscription(UInt64)
    case status
  }

  /// What the next request asks a digest of; nil if it asks none.
  var nextDigest: DigestSubject? {
    guard start < requests.count else { return nil }
    return switch requests[start] {
    case .digest(let number): .subscription(number)
    case .query(_, ReportName.status.rawValue, _): .status
    case .subscribe, .refuse, .refuseQuery, .unsubscribe, .ping, .query: nil
    }
  }

  /// Have the next request wait for a digest. Returns false if it has waited a few times: while that was
  /// computed, too much has changed again.
  mutating func waitForDigest() -> Bool {
    digestTries = min(digestTries + 1, 5)
    isWaitingForDigest = digestTries <= 4
    return isWaitingForDigest
  }

  /// Remove and return the oldest request.
  mutating func next() -> Request? {
    guard start < requests.count else { return nil }
    digestTries = 0
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

  /// Release the memory that is kept for the next requests, if none waits.
  mutating func trim() {
    if requests.isEmpty, requests.capacity > 0 { requests = [] }
  }

  /// Remove and return the requests that are refused.
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
