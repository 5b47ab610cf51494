import Documents
import Testing
import Values

@testable import CommandLineTool

/// What a page of the inspector is told, and what is not kept for one that does not read.
@Suite struct InspectorOutboxTests {
  private func next(_ outbox: InspectorOutbox) async throws -> Value {
    let text = await outbox.next()
    return try JSON.parse(try #require(text))
  }

  private func log(_ numbers: ClosedRange<UInt64>, missed: UInt64 = 0) -> InspectorOutbox.LogPush {
    InspectorOutbox.LogPush(
      records: numbers.map { ["sequence": Value($0)] }, missed: missed, total: numbers.upperBound)
  }

  @Test func `answers come in order, and before what happens`() async throws {
    let outbox = InspectorOutbox()
    outbox.tell(look: ["push": "look"])
    for number in 1...3 { outbox.answer(["id": .integer(Int64(number))]) }
    for number in 1...3 { #expect(try await next(outbox).child("id") == .integer(Int64(number))) }
    #expect(try await next(outbox) == ["push": "look"])
  }

  @Test func `of what a page does not read only the newest is kept, and the rest is counted`()
    async throws
  {
    let outbox = InspectorOutbox()
    for number in 1...5000 as ClosedRange<UInt64> {
      outbox.tell(look: ["push": "look", "number": Value(number)])
      outbox.tell(log(number...number, missed: 1))
      outbox.tell(["path": "/a", "value": Value(number)], at: "/a")
    }
    outbox.tell(["path": "/b", "value": 1], at: "/b")
    #expect(
      try await next(outbox) == [
        "push": "values", "values": [["path": "/a", "value": 5000], ["path": "/b", "value": 1]],
      ])
    let log = try await next(outbox)
    guard case .array(let records)? = log.child("records") else {
      Issue.record("\(log)")
      return
    }
    #expect(records.count == 200 && records.last == ["sequence": 5000])
    #expect(log.child("missed") == 9800 && log.child("total") == 5000)
    #expect(try await next(outbox).child("number") == 5000)
  }

  @Test func `values are told no more often than they may be`() async throws {
    let outbox = InspectorOutbox()
    outbox.tell(["path": "/a"], at: "/a")
    #expect(try await next(outbox).child("push") == "values")
    outbox.tell(["path": "/a"], at: "/a")
    outbox.answer(["id": 1])
    #expect(try await next(outbox).child("id") == 1)
    outbox.releaseValues()
    #expect(try await next(outbox).child("push") == "values")
    outbox.tell(["path": "/a"], at: "/a")
    outbox.keepValues(of: ["/b"])
    outbox.releaseValues()
    outbox.answer(["id": 2])
    #expect(try await next(outbox).child("id") == 2)
  }

  @Test func `another connection makes old what was not read yet`() async throws {
    let outbox = InspectorOutbox()
    outbox.tell(look: ["push": "look"])
    outbox.tell(log(1...1))
    outbox.tell(["path": "/a"], at: "/a")
    outbox.tell(connection: ["push": "connection", "state": "live"])
    #expect(try await next(outbox).child("state") == "live")
    outbox.end()
    #expect(await outbox.next() == nil && outbox.isOver)
  }

  @Test func `who waits for a message gets it, or the end`() async throws {
    let outbox = InspectorOutbox()
    async let first = outbox.next()
    async let _ = outbox.answer(["id": 1])
    #expect(await first == #"{"id":1}"#)
    async let last = outbox.next()
    outbox.end()
    #expect(await last == nil)
  }

  @Test func `one at a time passes a turnstile, in order, whatever becomes of it`() async throws {
    struct Stumble: Error {}
    let turnstile = Turnstile()
    let (inside, entered) = AsyncStream.makeStream(of: Int.self)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<20 {
        group.addTask {
          _ = try? await turnstile.pass {
            entered.yield(number)
            await Task.yield()
            entered.yield(number)
            if number % 3 == 0 { throw Stumble() }
          }
        }
      }
    }
    entered.finish()
    var seen: [Int] = []
    for await number in inside { seen.append(number) }
    #expect(seen.count == 40)
    for place in stride(from: 0, to: 40, by: 2) { #expect(seen[place] == seen[place + 1]) }
  }
}
