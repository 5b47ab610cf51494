import Lockstep
import Synchronization
import Testing

@Suite("Effects: named tasks")
struct NamedTasksTests {
  private let a = ScopedEffectKey(scope: [], key: EffectKey("a"))
  private let b = ScopedEffectKey(scope: [], key: EffectKey("b"))

  /// Records the cancelled tasks, in order.
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

  @Test("the cancel closure of a task works after the task's end, and is not called by being read")
  func handedOut() {
    var tasks = NamedTasks()
    let number = tasks.begin(a, cancel: record.cancel("x"))
    let cancels = tasks.cancels(of: a)
    #expect(cancelled([]) == [])
    tasks.end(a, number)
    #expect(cancelled(tasks.cancels(of: a)) == [])
    #expect(cancelled(cancels) == ["x"])
  }

  @Test("only a task that ended is removed")
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

  @Test("2.1.4: a name reaches the tasks inside its feature, not those beside or around it")
  func scopes() {
    var tasks = NamedTasks()
    func name(_ scope: Int..., key: String = "a") -> ScopedEffectKey {
      ScopedEffectKey(scope: scope.map { EffectKey($0) }, key: EffectKey(key))
    }
    let innermost = tasks.begin(name(1, 2), cancel: record.cancel("innermost"))
    _ = tasks.begin(a, cancel: record.cancel("outer"))
    _ = tasks.begin(name(1), cancel: record.cancel("inner"))
    _ = tasks.begin(name(2), cancel: record.cancel("sibling"))
    _ = tasks.begin(name(1, key: "b"), cancel: record.cancel("other"))
    #expect(cancelled(tasks.cancels(of: a)) == ["innermost", "outer", "inner", "sibling"])
    #expect(cancelled(tasks.cancels(of: name(1))) == ["innermost", "inner"])
    #expect(cancelled(tasks.cancels(of: name(1, 2))) == ["innermost"])
    #expect(cancelled(tasks.cancels(of: name(3))) == [])
    tasks.end(name(1, 2), innermost)
    #expect(cancelled(tasks.cancels(of: a)) == ["outer", "inner", "sibling"])
  }
}
