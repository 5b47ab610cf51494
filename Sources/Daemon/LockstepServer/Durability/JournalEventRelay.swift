import DaemonCore
import EventLoop

/// Relays the journal's events to the loop.
///
/// Unchecked: the receiver is set once, on the loop's thread, before that runs anything else, and
/// called there.
final class JournalEventRelay: @unchecked Sendable {
  private let loop: Loop
  var receiver: ((JournalEvent) -> Void)?

  init(_ loop: Loop) { self.loop = loop }

  func tell(_ news: JournalEvent) { loop.execute { self.receiver?(news) } }
}
