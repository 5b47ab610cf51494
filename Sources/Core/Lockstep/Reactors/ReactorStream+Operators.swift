extension ReactorStream {
  /// The elements, each replaced by another.
  public func map<Result: Sendable>(
    _ transform: @escaping @Sendable (Element) async -> Result
  ) -> ReactorStream<Result> {
    compactMap(transform)
  }

  /// The elements, each replaced by another, or dropped where `transform` returns nil.
  public func compactMap<Result: Sendable>(
    _ transform: @escaping @Sendable (Element) async -> Result?
  ) -> ReactorStream<Result> {
    ReactorStream<Result>(subscribe: { send in
      await subscribe { element in
        if let result = await transform(element) { await send(result) }
      }
    })
  }

  /// The elements for which `isIncluded` is true.
  public func filter(
    _ isIncluded: @escaping @Sendable (Element) async -> Bool
  ) -> ReactorStream {
    compactMap { await isIncluded($0) ? $0 : nil }
  }

  /// The elements that differ from the one before.
  public func removeDuplicates(
    by areEqual: @escaping @Sendable (Element, Element) -> Bool
  ) -> ReactorStream {
    ReactorStream(subscribe: { send in
      let latest = Latest<Element>()
      return await subscribe { element in
        if await latest.replace(by: element, unless: areEqual) { await send(element) }
      }
    })
  }

  /// The elements of this stream and of another.
  public func merge(with other: ReactorStream) -> ReactorStream { .merge(self, other) }

  /// The elements after which none comes for the interval, and the last one. Time passes on the
  /// clock of the dependencies. Holds one element.
  public func debounce(for interval: Duration) -> ReactorStream {
    ReactorStream(subscribe: { send in
      await debounce(for: interval, on: DependencyValues.current.clock, send)
    })
  }

  private func debounce<C: Clock<Duration>>(
    for interval: Duration, on clock: C, _ send: @escaping Receiver
  ) async -> Source {
    let pending = Pending<Element, C.Instant>()
    // A bell and not a queue: the newest element is in `pending`.
    let (bell, ring) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let source = await subscribe { element in
      await pending.set(element, due: clock.now.advanced(by: interval))
      ring.yield()
    }
    return {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          for await _ in bell {
            while let due = await pending.deadline {
              try await clock.sleep(until: due, tolerance: nil)
              if let element = await pending.take(dueBy: clock.now) { await send(element) }
            }
          }
        }
        try await source()
        ring.finish()
        try await group.waitForAll()
      }
    }
  }
}

extension ReactorStream where Element: Equatable {
  /// The elements that differ from the one before.
  public func removeDuplicates() -> ReactorStream { removeDuplicates { $0 == $1 } }
}

/// The latest element, shared by the tasks of a stream.
private actor Latest<Element: Sendable> {
  private var element: Element?

  /// Replace the element by another, unless they are equal. Returns whether it was replaced.
  func replace(
    by new: Element, unless areEqual: @Sendable (Element, Element) -> Bool
  ) -> Bool {
    if let element, areEqual(element, new) { return false }
    element = new
    return true
  }
}

/// The element that waits for the end of a debounce interval.
private actor Pending<Element: Sendable, Instant: InstantProtocol> {
  private var element: Element?
  private(set) var deadline: Instant?

  func set(_ element: Element, due deadline: Instant) {
    self.element = element
    self.deadline = deadline
  }

  /// Take the element if its time has come.
  func take(dueBy now: Instant) -> Element? {
    guard let deadline, deadline <= now else { return nil }
    self.deadline = nil
    defer { element = nil }
    return element
  }
}
