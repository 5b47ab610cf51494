import Lockstep
import Synchronization
import Testing

@Suite("Effects: what they run under names of their own")
struct NamedTasksTests {
  private let a = ScopedEffectKey(scope: [], key: EffectKey("a"))
  private let b = ScopedEffectKey(scope: [], key: EffectKey("b"))

  /// Notes who was cancelled, in order.
  private final class Record: Sendable {
    private let names = Mutex<[String]>([])
    func cancel(_ name: String) -> NamedTasks.Cancel { { self.names.withLock { $0.append(name) } } }
    func taken(by cancels: [NamedTasks.Cancel]) -> [String] {
      for cancel in cancels { cancel() }
      return names.withLock { names in
        defer { names = [] }
        return names
      }
    }
  }

  private let record = Record()

  private func cancelled(_ cancels: [NamedTasks.Cancel]) -> [String] { record.taken(by: cancels) }

  @Test("tasks are cancelled by their name, in the order in which they began")
  func byName() {
    var tasks = NamedTasks()
    let numbers = (0..<20).map { number in
      tasks.begin(number.isMultiple(of: 2) ? a : b, cancel: record.cancel("\(number)"))
    }
    #expect(Set(numbers).count == 20)
    #expect(cancelled(tasks.cancels(of: a)) == (0..<20).filter { $0 % 2 == 0 }.map(String.init))
    #expect(cancelled(tasks.cancels(of: b)) == (0..<20).filter { $0 % 2 == 1 }.map(String.init))
    #expect(cancelled(tasks.cancels) == (0..<20).map(String.init))
  }

  @Test("handing out what cancels a task neither calls nor forgets it")
  func handedOut() {
    var tasks = NamedTasks()
    let number = tasks.begin(a, cancel: record.cancel("x"))
    let cancels = tasks.cancels(of: a)
    #expect(cancelled([]) == [])
    tasks.end(a, number)
    #expect(cancelled(tasks.cancels(of: a)) == [])
    #expect(cancelled(cancels) == ["x"])
  }

  @Test("a task that ended is forgotten, and only it")
  func ended() {
    var tasks = NamedTasks()
    let first = tasks.begin(a, cancel: record.cancel("first"))
    let second = tasks.begin(a, cancel: record.cancel("second"))
    tasks.end(b, first)
    #expect(cancelled(tasks.cancels(of: a)) == ["first", "second"])
    tasks.end(a, first)
    tasks.end(a, first)
    #expect(cancelled(tasks.cancels(of: a)) == ["second"])
    tasks.end(a, second)
    #expect(cancelled(tasks.cancels) == [])
    #expect(tasks.begin(a, cancel: record.cancel("third")) > second)
  }

  @Test("equal names in different children are different")
  func scopes() {
    var tasks = NamedTasks()
    let inner = ScopedEffectKey(scope: [EffectKey(1)], key: EffectKey("a"))
    _ = tasks.begin(inner, cancel: record.cancel("inner"))
    #expect(cancelled(tasks.cancels(of: a)) == [])
    #expect(cancelled(tasks.cancels(of: inner)) == ["inner"])
  }
}
