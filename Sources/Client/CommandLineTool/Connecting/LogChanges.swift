import EventLoop
import LockstepClient
import Synchronization
import Values
import Wire

/// Adds what they changed to the actions of the daemon's log.
struct LogChanges {
  private let finder: ChangeFinder
  /// Whether only what changed something there is wanted.
  private let isFilter: Bool
  let areWanted: Bool
  private let isOffer: Bool
  private let tell: (String) -> Void
  private var hasToldLimit = false

  /// With paths, only what changed something there is wanted. `tell` gets a sentence on what is not
  /// known; not if the changes were not asked for (`isOffer`).
  init(
    _ client: Client, at paths: [PathArgument], isShown: Bool, isOffer: Bool = false,
    tell: @escaping (String) -> Void = StandardError.note
  ) throws {
    isFilter = !paths.isEmpty
    areWanted = isFilter || isShown
    finder = ChangeFinder(
      client, at: try (isFilter ? paths : [PathArgument(.root)]).map(client.resolve))
    self.tell = tell
    self.isOffer = isOffer
  }

  /// The records with what they changed; those that are not wanted are left out. Where the daemon does
  /// not remember, that is said once.
  mutating func add(to records: [LogRecord]) async throws -> [LogRecord] {
    guard areWanted else { return records }
    let made = records.compactMap { $0.outcome.word == "changed" ? $0.revision : nil }
    guard let first = made.min(), let last = made.max() else { return isFilter ? [] : records }
    // Actions that lie far apart would have it look through all of its past, unasked.
    if isOffer, last - first > Self.longestOffer { return records }
    let found: ChangeFinder.Found
    do {
      found = try await finder.changes(of: first...last)
    } catch let failure as Failure where !isFilter && isNoAnswer(failure) {
      tellLimit("what these actions changed is not known: \(failure.message)")
      return records.map { $0.outcome.word == "changed" ? $0.with(nil) : $0 }
    }
    if first <= found.since {
      tellLimit(
        isFilter
          ? "actions up to revision \(found.since) are left out: what they changed is forgotten."
          : "what actions up to revision \(found.since) changed is forgotten.")
    }
    return records.compactMap { record in
      guard record.outcome.word == "changed", let revision = record.revision else {
        return isFilter ? nil : record
      }
      if let changes = found.changes[revision] { return record.with(changes) }
      return isFilter ? nil : record.with(revision <= found.since ? nil : [])
    }
  }

  /// The most revisions that are looked through where the changes were not asked for.
  private static var longestOffer: UInt64 { 1000 }

  /// Whether the daemon does not remember, or does not tell, where the changes were not asked for.
  private func isNoAnswer(_ failure: Failure) -> Bool {
    failure.status == .absent
      || isOffer && [.refused, .denied, .usage].contains(failure.status)
  }

  private mutating func tellLimit(_ text: String) {
    if !hasToldLimit && !isOffer { tell(text) }
    hasToldLimit = true
  }
}

/// The actions of the daemon's log as they come, in batches: each has all since the last, and they are at
/// least an interval apart, because the daemon is asked about each.
struct LogBatches: AsyncSequence {
  private let client: Client
  private let since: [String]
  private let interval: Duration

  /// `since` are the arguments of `log.follow`.
  init(_ client: Client, _ since: [String], every interval: Duration) {
    self.client = client
    self.since = since
    self.interval = interval
  }

  fileprivate final class Inbox: Sendable {
    let records = Mutex<[LogRecord]>([])
  }

  func makeAsyncIterator() -> Iterator {
    let (news, continuation) = AsyncThrowingStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let inbox = Inbox()
    let reader = Task { [client, since] in
      do {
        try await client.reports(.followLog, since) { report in
          let records = try LogRecord.records(of: report)
          inbox.records.withLock { $0 += records }
          continuation.yield()
        }
        continuation.finish()
      } catch {
        continuation.finish(throwing: error)
      }
    }
    continuation.onTermination = { _ in reader.cancel() }
    return Iterator(inbox: inbox, news: news.makeAsyncIterator(), interval: interval)
  }

  struct Iterator: AsyncIteratorProtocol {
    fileprivate let inbox: Inbox
    fileprivate var news: AsyncThrowingStream<Void, any Error>.Iterator
    fileprivate let interval: Duration
    private var last: ContinuousClock.Instant?

    fileprivate init(
      inbox: Inbox, news: AsyncThrowingStream<Void, any Error>.Iterator, interval: Duration
    ) {
      self.inbox = inbox
      self.news = news
      self.interval = interval
    }

    mutating func next() async throws -> [LogRecord]? {
      guard try await news.next() != nil else { return nil }
      if let last { try await LoopClock().sleep(until: last + interval) }
      last = .now
      return inbox.records.withLock { records in
        defer { records = [] }
        return records
      }
    }
  }
}
