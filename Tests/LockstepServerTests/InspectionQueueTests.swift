import DaemonCore
import Testing

@testable import LockstepServer

struct InspectionQueueTests {
  private func entry(_ connection: UInt64, uid: UInt64) -> InspectionQueue.Entry {
    .init(connection: ConnectionID(connection), query: 1, asked: .reloadPolicy, uid: uid)
  }

  @Test func `one look is taken at a time, and the users take turns`() {
    var queue = InspectionQueue()
    for connection in 1...5 as ClosedRange<UInt64> { queue.add(entry(connection, uid: 7)) }
    queue.add(entry(6, uid: 8))
    queue.add(entry(7, uid: 8))
    var taken: [UInt64] = []
    while let next = queue.begin() {
      taken.append(next.connection.rawValue)
      #expect(queue.begin().map(\.connection) == nil)
      queue.end()
    }
    #expect(taken == [1, 6, 2, 7, 3, 4, 5])
  }

  @Test func `a connection that has gone waits for nothing`() {
    var queue = InspectionQueue()
    for (connection, uid) in [(1, 7), (2, 8), (3, 7)] as [(UInt64, UInt64)] {
      queue.add(entry(connection, uid: uid))
    }
    queue.remove(ConnectionID(1))
    queue.remove(ConnectionID(2))
    queue.remove(ConnectionID(9))
    #expect(queue.begin()?.connection == ConnectionID(3))
    queue.end()
    #expect(queue.begin().map(\.connection) == nil)
    queue.add(entry(4, uid: 8))
    #expect(queue.begin()?.connection == ConnectionID(4))
  }
}
