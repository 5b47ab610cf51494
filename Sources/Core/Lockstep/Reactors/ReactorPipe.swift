// Theory of operation
//
// A reactor that transforms whole streams has up to two *pipes*: one for its actions, one for its
// mutations. A pipe is an effect that runs the transformed stream for as long as the reactor lives.
// What enters it waits in the inbox of the effect's name, which belongs to the shell. An action
// enters when the shell starts the effect of the action, so that actions keep their order; a
// mutation when its stream makes it. Either waits until the stream has handled it, so a pipe holds
// no more elements than effects run.
//
// When the transformed stream ends or fails, the next element begins it again.

/// A stream of a reactor: its name among the effects of the feature.
enum ReactorPipe: Hashable, Sendable {
  case actions, mutations

  /// The name of the effect that runs it, for people.
  var name: String {
    switch self {
    case .actions: "transform(action:)"
    case .mutations: "transform(mutation:)"
    }
  }

  // MARK: Entering

  /// The effect of an action that enters the pipe.
  func effect<Element: Sendable, Action: Sendable>(
    entering element: Element, named name: String
  ) -> Effect<Action> {
    let delivery = InboxDelivery(element)
    return .run(
      name: name,
      entering: { named, scope in named.put(delivery, into: key(in: scope)) },
      operation: { _ in await wait(for: delivery, EffectSurroundings.current) })
  }

  /// Let an element enter the pipe, and return when it has been handled.
  func enter<Element: Sendable>(_ element: Element, _ surroundings: EffectSurroundings?) async {
    guard !Task.isCancelled, let surroundings else { return }
    let delivery = InboxDelivery(element)
    let key = key(in: surroundings.scope)
    _ = await surroundings.host.withNamedTasks { $0.put(delivery, into: key) }
    await wait(for: delivery, surroundings)
  }

  private func wait<Element: Sendable>(
    for delivery: InboxDelivery<Element>, _ surroundings: EffectSurroundings?
  ) async {
    await delivery.wait()
    guard Task.isCancelled, let surroundings else { return }
    let key = key(in: surroundings.scope)
    _ = await surroundings.host.withNamedTasks { $0.withdraw(delivery, from: key) }
  }

  private func key(in scope: [EffectKey]) -> ScopedEffectKey {
    ScopedEffectKey(scope: scope, key: EffectKey(self))
  }

  // MARK: Running

  /// Run the transformed stream of what enters, until cancelled. `report` is told of its errors.
  func run<Element: Sendable>(
    _ transform: @Sendable (ReactorStream<Element>) -> ReactorStream<Element>,
    _ emit: @escaping @Sendable (Element) async -> Void,
    _ report: @Sendable (any Error) async -> Void
  ) async {
    guard let surroundings = EffectSurroundings.current else { return }
    let inbox = ReactorInbox<Element>(host: surroundings.host, key: key(in: surroundings.scope))
    // The first time it begins at once, for it may have elements of its own.
    var first: InboxDelivery<Element>?
    while !Task.isCancelled {
      let hub = ReactorHub<Element>()
      let source = await transform(hub.stream).subscribe(emit)
      let (left, error) = await Self.run(source, hub, inbox, beginningWith: first)
      if let error, !Task.isCancelled { await report(error) }
      // A stream that ended without taking the element with which it began drops it.
      if let left, left !== first {
        first = left
        continue
      }
      left?.finish()
      guard let next = await inbox.next() else { return }
      first = next
    }
  }

  private enum Ending<Element: Sendable>: Sendable {
    case source((any Error)?)
    /// With the element that no subscriber took.
    case input(InboxDelivery<Element>?)
  }

  /// Run a stream to its end, and hand what enters to its subscribers meanwhile. Returns the
  /// element that none took, and the error of the stream.
  private static func run<Element: Sendable>(
    _ source: @escaping ReactorStream<Element>.Source, _ hub: ReactorHub<Element>,
    _ inbox: ReactorInbox<Element>, beginningWith first: InboxDelivery<Element>?
  ) async -> (left: InboxDelivery<Element>?, error: (any Error)?) {
    await withTaskGroup(of: Ending<Element>.self) { group in
      group.addTask {
        do {
          try await source()
          return .source(nil)
        } catch {
          return .source(error)
        }
      }
      group.addTask { .input(await inbox.pass(to: hub, beginningWith: first)) }
      var result: (left: InboxDelivery<Element>?, error: (any Error)?)
      for await ending in group {
        group.cancelAll()
        switch ending {
        case .source(let error): result.error = error
        case .input(let left): result.left = left
        }
      }
      return result
    }
  }
}

/// The inbox of a running pipe.
private struct ReactorInbox<Element: Sendable>: Sendable {
  let host: any EffectHost
  let key: ScopedEffectKey

  /// The next delivery, when there is one; nil when the task is cancelled, or the shell is gone.
  func next() async -> InboxDelivery<Element>? {
    while !Task.isCancelled {
      let (wait, bell) = AsyncStream<Never>.makeStream()
      guard let delivery = await host.withNamedTasks({ [key] in $0.take(from: key, orRing: bell) })
      else { return nil }
      if let delivery { return delivery as? InboxDelivery<Element> }
      for await _ in wait {}
    }
    return nil
  }

  /// Hand what enters to the subscribers, while `next` has it. Returns the element that none took.
  func pass(
    to hub: ReactorHub<Element>, beginningWith first: InboxDelivery<Element>?
  ) async -> InboxDelivery<Element>? {
    var next = first
    if next == nil { next = await self.next() }
    while let delivery = next {
      guard await hub.send(delivery.element) else { return delivery }
      delivery.finish()
      next = await self.next()
    }
    return nil
  }
}

/// The source of a pipe's stream: hands every element to all subscribers.
private actor ReactorHub<Element: Sendable> {
  private var receivers: [Int: ReactorStream<Element>.Receiver] = [:]
  private var last = 0
  /// Ends the wait for the first subscriber.
  private var bell: AsyncStream<Never>.Continuation?

  /// Ends only when it is cancelled.
  nonisolated var stream: ReactorStream<Element> {
    ReactorStream(subscribe: { receiver in
      let number = await self.subscribe(receiver)
      return {
        let (cancelled, keep) = AsyncStream<Never>.makeStream()
        for await _ in cancelled {}
        withExtendedLifetime(keep) {}
        await self.unsubscribe(number)
      }
    })
  }

  private func subscribe(_ receiver: @escaping ReactorStream<Element>.Receiver) -> Int {
    last += 1
    receivers[last] = receiver
    bell?.finish()
    return last
  }

  private func unsubscribe(_ number: Int) { receivers[number] = nil }

  /// Hand an element to the subscribers, in the order in which they subscribed, once there is one.
  /// Returns false when the task was cancelled before.
  func send(_ element: Element) async -> Bool {
    while receivers.isEmpty {
      if Task.isCancelled { return false }
      let (wait, bell) = AsyncStream<Never>.makeStream()
      self.bell = bell
      for await _ in wait {}
    }
    for (_, receive) in receivers.sorted(by: { $0.key < $1.key }) { await receive(element) }
    return true
  }
}
