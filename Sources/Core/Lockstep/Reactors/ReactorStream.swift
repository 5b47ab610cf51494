/// A stream of mutations.
public typealias Mutations<Mutation: Sendable> = ReactorStream<Mutation>

/// A stream of a reactor's mutations or actions, composed of parts.
///
/// It passes its elements on one by one: a source continues when the element before has been
/// handled, for a mutation when it has been reduced.
public struct ReactorStream<Element: Sendable>: AsyncSequence, Sendable {
  public typealias Failure = any Error
  public typealias AsyncIterator = AsyncThrowingStream<Element, any Error>.Iterator
  /// Receives the elements.
  typealias Receiver = @Sendable (Element) async -> Void
  /// Makes the elements; returns at their end.
  typealias Source = @Sendable () async throws -> Void

  /// Subscribes a receiver: all elements that a shared source has from then on reach it.
  let subscribe: @Sendable (@escaping Receiver) async -> Source
  /// Whether it is the stream by which a reactor is asked if it transforms streams.
  private(set) var isProbe = false

  init(subscribe: @escaping @Sendable (@escaping Receiver) async -> Source) {
    self.subscribe = subscribe
  }

  /// The elements that an operation passes to its argument.
  public init(
    _ run: @escaping @Sendable (@escaping @Sendable (Element) async -> Void) async throws -> Void
  ) {
    self.init(subscribe: { send in { try await run(send) } })
  }

  /// The elements of another sequence.
  public init<Elements: AsyncSequence & Sendable>(_ elements: Elements)
  where Elements.Element == Element {
    self.init { send in for try await element in elements { await send(element) } }
  }

  /// A stream without elements that a reactor returns as it is if it transforms nothing.
  static var probe: ReactorStream {
    var probe = empty
    probe.isProbe = true
    return probe
  }

  /// Pass every element to `send`, and continue when it has returned.
  func forEach(_ send: @escaping @Sendable (Element) async -> Void) async throws {
    try await subscribe(send)()
  }

  /// No element.
  public static var empty: ReactorStream { ReactorStream { _ in } }

  /// One element, at once.
  public static func just(_ element: Element) -> ReactorStream {
    ReactorStream { send in await send(element) }
  }

  /// One stream after the other: the next begins when the one before has ended.
  public static func concat(_ parts: ReactorStream...) -> ReactorStream {
    ReactorStream(subscribe: { send in
      let first = await parts.first?.subscribe(send)
      return {
        try await first?()
        for part in parts.dropFirst() { try await part.forEach(send) }
      }
    })
  }

  /// Streams that run concurrently.
  public static func merge(_ parts: ReactorStream...) -> ReactorStream {
    ReactorStream(subscribe: { send in
      var sources: [Source] = []
      for part in parts { sources.append(await part.subscribe(send)) }
      return { [sources] in
        try await withThrowingTaskGroup(of: Void.self) { group in
          for source in sources { group.addTask { try await source() } }
          try await group.waitForAll()
        }
      }
    })
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncThrowingStream { continuation in
      let task = Task(executorPreference: EffectSurroundings.current?.host.effectExecutor) {
        do {
          try await forEach { continuation.yield($0) }
          continuation.finish()
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }.makeAsyncIterator()
  }
}
