import Synchronization

/// A sequence for one reader that may be slow, or stopped: when the elements that wait take more than a
/// limit, they are merged, so that they never take much more. An element costs O(1), amortised.
///
/// The source of this rule is the daemon's: a client that is slow gets fewer and wider patches.
public struct MergingStream<Element: Sendable>: AsyncSequence, Sendable {
  /// The elements that wait, and the number of bytes that they take.
  private let waiting: Waiting
  /// Wakes the reader. One wake-up is enough, however much has come.
  private let wakeups: AsyncStream<Void>

  /// A sequence and its source. `merge` is given all elements that wait, from the oldest to the newest,
  /// and returns the few that the reader is to have in their place. It must not use the source.
  package static func make(
    bytes limit: Int, merge: @escaping @Sendable ([Element]) -> [Element]
  ) -> (stream: MergingStream, source: Source) {
    let waiting = Waiting(limit: limit, merge: merge)
    let (wakeups, continuation) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    return (
      MergingStream(waiting: waiting, wakeups: wakeups),
      Source(waiting: waiting, wakeups: continuation)
    )
  }

  /// What a sequence comes from. May be used by any thread.
  package struct Source: Sendable {
    fileprivate let waiting: Waiting
    fileprivate let wakeups: AsyncStream<Void>.Continuation

    /// Add an element that takes so many bytes.
    package func append(_ element: Element, bytes: Int) {
      waiting.append(element, bytes)
      wakeups.yield()
    }

    /// End the sequence, when its reader has taken what waits.
    package func finish() { wakeups.finish() }

    /// Call `body` when the reader is cancelled or released, not when the sequence is finished.
    package func onTermination(_ body: @escaping @Sendable () -> Void) {
      wakeups.onTermination(body)
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(waiting: waiting, wakeups: wakeups.makeAsyncIterator())
  }

  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let waiting: Waiting
    fileprivate var wakeups: AsyncStream<Void>.Iterator

    public mutating func next() async -> Element? {
      while true {
        if let element = waiting.removeFirst() { return element }
        // What was added before the end, and after the last look.
        guard await wakeups.next() != nil else { return waiting.removeFirst() }
      }
    }
  }
}

extension MergingStream {
  /// The elements that wait.
  fileprivate final class Waiting: Sendable {
    private struct Contents: Sendable {
      /// Those before `first` are taken, and nil.
      var elements: [(element: Element, bytes: Int)?] = []
      var first = 0
      var bytes = 0
    }

    private let limit: Int
    private let merge: @Sendable ([Element]) -> [Element]
    private let contents = Mutex(Contents())

    /// What an element takes beside its own bytes, about.
    private static var overhead: Int { 256 }

    init(limit: Int, merge: @escaping @Sendable ([Element]) -> [Element]) {
      (self.limit, self.merge) = (limit, merge)
    }

    func append(_ element: Element, _ bytes: Int) {
      let bytes = bytes + Self.overhead
      // Released when the mutex is free, because they may be objects of the user's.
      let merged = contents.withLock { contents -> [(element: Element, bytes: Int)?] in
        contents.elements.append((element, bytes))
        contents.bytes += bytes
        guard contents.bytes > limit, contents.elements.count - contents.first > 1 else {
          return []
        }
        let former = contents.elements
        let elements = merge(former[contents.first...].compactMap { $0?.element })
        contents = Contents(
          elements: elements.map { ($0, Self.overhead) }, bytes: elements.count * Self.overhead)
        return former
      }
      withExtendedLifetime(merged) {}
    }

    func removeFirst() -> Element? {
      contents.withLock { contents in
        guard contents.first < contents.elements.count else { return nil }
        let taken = contents.elements[contents.first]
        contents.elements[contents.first] = nil
        contents.first += 1
        contents.bytes -= taken?.bytes ?? 0
        if contents.first == contents.elements.count {
          contents.elements.removeAll(keepingCapacity: contents.first <= 64)
          contents.first = 0
        } else if contents.first >= 64, contents.first * 2 >= contents.elements.count {
          contents.elements.removeFirst(contents.first)
          contents.first = 0
        }
        return taken?.element
      }
    }
  }
}
