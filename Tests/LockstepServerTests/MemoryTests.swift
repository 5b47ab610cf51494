import DaemonCore
import Testing

@testable import LockstepServer

@Suite struct MemoryTests {
  @Test func `limits are fitted to the smallest total, not to the least that is free`() {
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

  @Test func `without a memory limit the limits stay unchanged`() {
    var limits = Limits()
    limits.fit([])
    #expect(limits.table.map(\.value) == Limits().table.map(\.value))
  }
}
