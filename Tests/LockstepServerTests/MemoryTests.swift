import DaemonCore
import Testing

@testable import LockstepServer

@Suite struct MemoryTests {
  @Test func `limits fit the least that holds, not the one with the least left`() {
    var limits = Limits()
    limits.fit([
      MemoryReading(free: 1 << 20, limit: 1 << 40, name: "the machine"),
      MemoryReading(free: 60 << 20, limit: 64 << 20, name: "memory.max"),
    ])
    var fitting = Limits()
    fitting.fit(memory: 64 << 20)
    #expect(limits.frameBytes == 8 << 20)
    #expect(limits.table.map(\.value) == fitting.table.map(\.value))
  }

  @Test func `without a limit they are as they were`() {
    var limits = Limits()
    limits.fit([])
    #expect(limits.table.map(\.value) == Limits().table.map(\.value))
  }
}
