/// An element on its way to a running effect, which the sender waits for.
final class InboxDelivery<Element: Sendable>: Sendable {
  let element: Element
  private let handled: AsyncStream<Never>
  private let end: AsyncStream<Never>.Continuation

  init(_ element: Element) {
    self.element = element
    (handled, end) = AsyncStream.makeStream()
  }

  /// Return when the element has been handled, or the task is cancelled.
  func wait() async { for await _ in handled {} }

  /// Let the sender continue.
  func finish() { end.finish() }
}

/// The elements that wait for the effect of a name, in the order in which they came.
struct EffectInbox: Sendable {
  private var deliveries: [any AnyObject & Sendable] = []
  /// Ends the wait of the effect, if it waits.
  private var bell: AsyncStream<Never>.Continuation?

  var isEmpty: Bool { deliveries.isEmpty && bell == nil }

  mutating func put(_ delivery: any AnyObject & Sendable) {
    deliveries.append(delivery)
    bell?.finish()
    bell = nil
  }

  /// Take the first delivery; if there is none, `bell` is finished when there may be one. O(those
  /// that wait), which are effects of the store.
  mutating func take(orRing bell: AsyncStream<Never>.Continuation) -> (any AnyObject & Sendable)? {
    if deliveries.isEmpty {
      self.bell = bell
      return nil
    }
    self.bell = nil
    return deliveries.removeFirst()
  }

  mutating func withdraw(_ delivery: AnyObject) { deliveries.removeAll { $0 === delivery } }
}
