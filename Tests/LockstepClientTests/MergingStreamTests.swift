import LockstepClient
import Testing

/// What waits for a slow reader is merged, and nothing of it for one that is quick.
@Suite struct MergingStreamTests {
  private typealias Numbers = MergingStream<Int>

  /// At most ten elements of a thousand bytes wait; of more the newest is kept.
  private static func make() -> (stream: Numbers, source: Numbers.Source) {
    Numbers.make(bytes: 10 * (1000 + 256)) { [$0[$0.count - 1]] }
  }

  @Test func `a reader that is no more than the limit behind gets every element, in order`() async {
    let (stream, source) = Self.make()
    var reader = stream.makeAsyncIterator()
    var next = 1
    for round in 0..<500 {
      let count = round % 10 + 1
      for number in next..<next + count { source.append(number, bytes: 1000) }
      for number in next..<next + count { #expect(await reader.next() == number) }
      next += count
    }
    // One more than it takes is always waiting: those that are taken are not kept.
    source.append(next, bytes: 1000)
    for number in next..<next + 500 {
      source.append(number + 1, bytes: 1000)
      #expect(await reader.next() == number)
    }
  }

  @Test func `beyond the limit the newest takes the place of all that wait`() async {
    let (stream, source) = Self.make()
    for number in 1...10 { source.append(number, bytes: 1000) }
    source.append(11, bytes: 1000)
    for number in 12...15 { source.append(number, bytes: 1000) }
    source.finish()
    var seen: [Int] = []
    for await number in stream { seen.append(number) }
    #expect(seen == Array(11...15))
  }

  @Test func `one element may be larger than the limit`() async {
    let (stream, source) = Self.make()
    source.append(1, bytes: 1 << 30)
    source.finish()
    var reader = stream.makeAsyncIterator()
    #expect(await reader.next() == 1)
    #expect(await reader.next() == nil)
    #expect(await reader.next() == nil)
  }

  @Test func `what waits is no more than the limit, whatever comes`() async {
    final class Counted: Sendable {}
    let (stream, source) = MergingStream<Counted>.make(bytes: 256 * 100) { [$0[$0.count - 1]] }
    var known: [Weak<Counted>] = []
    for _ in 0..<10_000 {
      let element = Counted()
      known.append(Weak(element))
      source.append(element, bytes: 0)
      if known.count % 1000 == 0 { #expect(known.count { $0.value != nil } <= 101) }
    }
    withExtendedLifetime(stream) {}
  }

  private struct Weak<Object: AnyObject> {
    weak var value: Object?
    init(_ value: Object) { self.value = value }
  }

  @Test func `a reader waits for what comes, and its cancellation is told`() async {
    let (stream, source) = Self.make()
    await confirmation("told") { told in
      source.onTermination { told() }
      let reader = Task {
        var seen: [Int] = []
        for await number in stream {
          seen.append(number)
          if number == 2 { withUnsafeCurrentTask { $0?.cancel() } }
        }
        return seen
      }
      source.append(1, bytes: 0)
      source.append(2, bytes: 0)
      #expect(await reader.value == [1, 2])
    }
  }
}
