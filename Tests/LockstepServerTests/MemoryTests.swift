import DaemonCore
import Foundation
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

  /// Where the machine's own numbers are to be seen, and not those of a container.
  private static var seesMachine: Bool {
    FileManager.default.isReadableFile(atPath: "/sys/devices/system/node/node0/meminfo")
      && MachineMemory.fromProc?.limit == sysconf(Int32(_SC_PHYS_PAGES))
        * sysconf(Int32(_SC_PAGESIZE))
  }

  /// In a unit with `ProcSubset=pid`, the kernel's own estimate cannot be read.
  @Test(.enabled(if: seesMachine))
  func `the machine's memory is known without /proc, and about the same`() throws {
    // Other processes allocate between the readings: one pair of many is enough.
    let differences = try (0..<50).map { _ in
      let kernel = try #require(MachineMemory.fromProc)
      let own = try #require(MachineMemory.fromNodes("/sys/devices/system/node"))
      #expect(own.limit == kernel.limit)
      return abs(own.free - kernel.free) * 20 / kernel.limit
    }
    #expect(differences.contains(0), "in twentieths of all: \(differences)")
  }

  @Test func `the memory of several nodes is added`() throws {
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "nodes-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    func write(_ text: String, _ path: String) throws {
      let file = folder.appending(path: path)
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(text.utf8).write(to: file)
    }
    func node(_ number: Int, _ megabytes: Int) throws {
      let kilobytes = megabytes << 10
      try write(
        """
        Node \(number) MemTotal:       10577696 kB
        Node \(number) Active(anon):      900000 kB
        Node \(number) Active(file):    \(kilobytes) kB
        Node \(number) Inactive(file):   0 kB
        Node \(number) SReclaimable:     0 kB

        """, "node\(number)/meminfo")
    }
    #expect(MachineMemory.fromNodes(folder.path) == nil)
    try node(0, 1)
    try node(2, 1)
    let less = try #require(MachineMemory.fromNodes(folder.path)).free
    try node(2, 1 << 30)
    let most = try #require(MachineMemory.fromNodes(folder.path))
    #expect(most.free > less && most.free >= most.limit / 50 * 49)
  }
}
