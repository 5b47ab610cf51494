import EventLoop
import Synchronization

/// A task that waits for an answer. The answer resumes it, or its cancellation, whichever comes
/// first; what comes later changes nothing.
final class Waiter<Answer: Sendable>: Sendable {
  private enum State {
    case new
    case waiting(CheckedContinuation<Answer, any Error>)
    case resumed
  }

  private let state = Mutex(State.new)

  /// Begin to wait. Returns false when the task has been cancelled before: it is resumed then, and
  /// nothing may be asked for it.
  func begin(_ continuation: CheckedContinuation<Answer, any Error>) -> Bool {
    let begins = state.withLock { state in
      guard case .new = state else { return false }
      state = .waiting(continuation)
      return true
    }
    if !begins { continuation.resume(throwing: CancellationError()) }
    return begins
  }

  var isResumed: Bool {
    state.withLock { state in if case .resumed = state { true } else { false } }
  }

  func resume(with result: Result<Answer, any Error>) {
    let continuation = state.withLock { state -> CheckedContinuation<Answer, any Error>? in
      defer { state = .resumed }
      guard case .waiting(let continuation) = state else { return nil }
      return continuation
    }
    continuation?.resume(with: result)
  }

  func resume(returning answer: Answer) { resume(with: .success(answer)) }
  func resume(throwing error: any Error) { resume(with: .failure(error)) }
}

extension Waiter<Void> {
  func resume() { resume(returning: ()) }
}

extension Link {
  /// Wait for an answer. `register` runs under the mutex: it stores the waiter, or delivers its
  /// resumption. Throws `CancellationError` as soon as the task is cancelled; `register` does not run
  /// if that is before.
  func wait<Answer: Sendable>(
    _ register: (inout State, Waiter<Answer>) -> Void
  ) async throws -> Answer {
    let waiter = Waiter<Answer>()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        guard waiter.begin(continuation) else { return }
        perform { state in
          register(&state, waiter)
          // It may have been cancelled, and forgotten, just before.
          if waiter.isResumed { state.forget(waiter) }
        }
      }
    } onCancel: {
      waiter.resume(throwing: CancellationError())
      // On the loop, because a handler may run under a lock of its task.
      loop.execute { [weak self] in self?.state.withLock { $0.forget(waiter) } }
    }
  }
}

extension Link.State {
  /// Remove a waiter for whom there may never be an answer. Every request has one, or an end.
  fileprivate mutating func forget(_ waiter: AnyObject) {
    reached.removeAll { $0.waiter === waiter }
    connecting.removeAll { $0 === waiter }
  }
}
