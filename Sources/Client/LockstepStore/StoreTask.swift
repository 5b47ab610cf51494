public import Lockstep
import Synchronization

/// The cascade of an action of a store: its effects, the actions that they send, and so on.
public struct StoreTask: Sendable {
  let ticket: StoreTicket
  private let wait: @Sendable () async -> Void
  private let end: @Sendable () -> Void

  init(
    _ ticket: StoreTicket, wait: @escaping @Sendable () async -> Void,
    end: @escaping @Sendable () -> Void
  ) {
    self.ticket = ticket
    self.wait = wait
    self.end = end
  }

  /// Return when the whole cascade has ended. Cancelling the waiting task cancels the cascade.
  public func finish() async {
    await withTaskCancellationHandler {
      await wait()
    } onCancel: {
      cancel()
    }
  }

  /// Cancel the effects of the action and of the actions that they sent.
  public func cancel() {
    ticket.cancel()
    end()
  }

  public var isCancelled: Bool { ticket.isCancelled }

  /// The result of the action; nil while it waits for the running action to end.
  public var reduction: Reduction? { ticket.reduction }
}

/// The progress of an action through a store.
final class StoreTicket: Sendable {
  private struct State: Sendable {
    var sequence: UInt64?
    var reduction: Reduction?
    var isCancelled = false
  }

  private let state = Mutex(State())

  /// The number of the action, once it is reduced.
  var sequence: UInt64? { state.withLock { $0.sequence } }
  var reduction: Reduction? { state.withLock { $0.reduction } }
  var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// Record the result of the action.
  func reduced(_ sequence: UInt64, _ reduction: Reduction) {
    state.withLock { state in
      state.sequence = sequence
      state.reduction = reduction
    }
  }

  func cancel() { state.withLock { $0.isCancelled = true } }
}
