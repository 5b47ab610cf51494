import Access
import DaemonCore
import EventLoop
import Lockstep
import Logging
import Values
import Wire

/// Reloads a daemon's policy file, off the loop, and puts it in force. Belongs to the loop's
/// thread.
final class PolicyReloader {
  typealias Result = Swift.Result<LoadedPolicy, PolicyError>

  private let loop: Loop
  private let read: @Sendable () -> Result
  /// Puts a policy in force.
  private let take: (LoadedPolicy) -> Void
  private let service: ServiceManager
  private let logger: Logger
  private var isReading = false
  /// Requests that wait for the current reading, and for the one after it.
  private var waiting: [(Value) -> Void] = []
  private var next: [(Value) -> Void] = []
  private var isWantedAgain = false
  /// The reason that the file was last refused; nil when it is in force.
  var trouble: PolicyError?

  init(
    on loop: Loop, service: ServiceManager, logger: Logger, read: @escaping @Sendable () -> Result,
    take: @escaping (LoadedPolicy) -> Void
  ) {
    self.loop = loop
    self.service = service
    self.logger = logger
    self.read = read
    self.take = take
  }

  /// Reload the file. Either all of it is in force from then on or, if it has a mistake, the former
  /// policy stays. `answer` is called with the result, in the form of the report `policy.reload`.
  func reload(answer: @escaping (Value) -> Void = { _ in }) {
    // The current reading may miss changes that were made since it began.
    guard !isReading else {
      next.append(answer)
      isWantedAgain = true
      return
    }
    waiting.append(answer)
    begin()
  }

  private func begin() {
    isReading = true
    service.reloading()
    let (loop, read) = (loop, read)
    let reloader = Unchecked(self)
    // On the global pool, because it blocks: the names of users may be in a directory service.
    Task.detached {
      let result = read()
      loop.execute { reloader.value?.finish(result) }
    }
  }

  private func finish(_ result: Result) {
    isReading = false
    let answer: Value
    switch result {
    case .success(let loaded):
      trouble = nil
      take(loaded)
      answer = [
        "policy": .text(loaded.file), "rules": .integer(Int64(loaded.policy.rules.count)),
        "notes": .array(TreeArray(loaded.notes.map { .text("\($0)") })),
      ]
      for note in loaded.notes { logger.warning("\(note)") }
      logger.notice("policy read again", metadata: ["file": "\(loaded.file)"])
    case .failure(let error):
      trouble = error
      answer = ReportError(.refused, "the former policy stays: \(error)").report
      logger.error("the former policy stays: \(error)")
    }
    service.reloaded()
    for waiter in waiting { waiter(answer) }
    waiting = next
    next = []
    guard isWantedAgain else { return }
    isWantedAgain = false
    begin()
  }
}
