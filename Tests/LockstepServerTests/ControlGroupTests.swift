import DaemonCore
import Foundation
import Testing

@testable import LockstepServer

/// Trees of files in the kernel's format, because a real limit needs rights that tests lack.
@Suite struct ControlGroupTests {
  private func free(
    _ membership: String, _ files: [String: String], _ version: ControlGroup.Version = .two
  ) throws -> Int? {
    let root = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: root) }
    for (path, text) in files {
      let file = root.appending(path: path)
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(text.utf8).write(to: file)
    }
    return ControlGroup(membership: membership, version, root: root.path, machineSwap: 50)?
      .freeMemory
  }

  @Test func `the free memory is the least that any group's limit leaves`() throws {
    let files = [
      "system.slice/memory.max": "1000\n", "system.slice/memory.current": "700\n",
      "system.slice/a.service/memory.max": "900\n",
      "system.slice/a.service/memory.current": "100\n",
    ]
    #expect(try free("0::/system.slice/a.service\n", files) == 300)
    #expect(try free("4:memory:/x\n0::/system.slice/a.service\n", files) == 300)
    #expect(try free("0::/system.slice/b.service\n", files) == 300)
    #expect(try free("0::/user.slice\n", files) == nil)
  }

  @Test func `file cache counts as free`() throws {
    var files = [
      "a/memory.max": "1000\n", "a/memory.current": "990\n",
      "a/memory.stat": "anon 100\nfile 900\ninactive_file 600\nactive_file 200\nslab 1\n",
    ]
    #expect(try free("0::/a", files) == 810)
    files["a/memory.stat"] = "inactive_file 5000"
    #expect(try free("0::/a", files) == 1000)
  }

  @Test(arguments: [
    "max\n", "", "-1\n", "99999999999999999999\n", "12 monkeys\n",
  ])
  func `without a number there is no limit`(text: String) throws {
    #expect(try free("0::/a", ["a/memory.max": text, "a/memory.current": "5\n"]) == nil)
    #expect(try free("0::/a", ["a/memory.max": "5\n", "a/memory.current": text]) == nil)
  }

  @Test func `swap counts as free, as far as the group and the machine have it`() throws {
    var files = [
      "a/memory.max": "1000\n", "a/memory.current": "990\n", "a/memory.swap.max": "max\n",
      "a/memory.swap.current": "5\n",
    ]
    #expect(try free("0::/a", files) == 60)
    files["a/memory.swap.max"] = "25\n"
    #expect(try free("0::/a", files) == 30)
    files["a/memory.swap.max"] = "0\n"
    #expect(try free("0::/a", files) == 10)
  }

  @Test func `in the root of a namespace the limit of that root applies`() throws {
    #expect(try free("0::/\n", ["memory.max": "70\n", "memory.current": "80\n"]) == 0)
  }

  @Test(arguments: ["", "\n", "4:memory:/a\n", "0::", "0::/../b\n"])
  func `an unknown or invalid group has no limit`(membership: String) throws {
    let files = ["b/memory.max": "9\n", "b/memory.current": "3\n"]
    #expect(try free(membership, files) == nil)
  }

  @Test func `memory.high is a limit too`() throws {
    let files = [
      "a/memory.max": "1000\n", "a/memory.high": "800\n", "a/memory.current": "300\n",
      "a/b/memory.high": "max\n", "a/b/memory.max": "600\n", "a/b/memory.current": "250\n",
    ]
    #expect(try free("0::/a/b", files) == 350)
    #expect(try free("0::/a", files) == 500)
  }

  @Test func `version 1 has other file names for the same limits`() throws {
    let files = [
      "memory.limit_in_bytes": "9223372036854771712\n", "memory.usage_in_bytes": "5000\n",
      "a/memory.limit_in_bytes": "1000\n", "a/memory.usage_in_bytes": "900\n",
      "a/memory.stat": "inactive_file 999\ntotal_inactive_file 100\ntotal_active_file 50\n",
    ]
    #expect(try free("4:cpu,memory:/a\n0::/x\n", files, .one) == 250)
    #expect(try free("4:memory:/\n", files, .one) == nil)
    #expect(try free("4:memory:/b\n", files, .one) == nil)
    #expect(try free("4:memory:/a/b\n", files, .one) == 250)
    #expect(try free("4:memory_other:/a\n0::/a", files, .one) == nil)
  }

  @Test func `the limits for peers are fitted to the memory`() {
    let all = Limits()
    var limits = Limits()
    limits.fit(memory: 8 << 30)
    #expect(limits == all)
    limits.fit(memory: 150 << 20)
    #expect(limits.frameBytes == all.frameBytes)
    #expect(limits.partialBytesPerUser < 20 << 20 && limits.journalQueueBytes < 20 << 20)
    limits.fit(memory: 1 << 20)
    #expect(limits.frameBytes == 1 << 20 && limits.partialBytesPerUser == 1 << 20)
  }

  @Test func `large work waits for other work, and is refused if it can never fit`() {
    var said: [String] = []
    var free = 100
    let desk = MemoryDesk(mostTogether: { 1000 }) { $0 <= free }
    func ask(_ name: String, _ bytes: Int) {
      desk.request(bytes) {
        said.append("\(name) begins")
      } orElse: {
        said.append("\(name) is refused")
      }
    }
    ask("a", 60)
    ask("b", 60)
    ask("c", 10)
    #expect(said == ["a begins"])
    free = 40
    desk.finished(60)
    #expect(said == ["a begins", "b is refused", "c begins"])
    desk.finished(10)
    ask("d", 50)
    #expect(said.last == "d is refused")
    // A job may end at once, and its closure may request again.
    desk.request(5) {
      desk.finished(5)
      ask("e", 40)
    } orElse: {
    }
    #expect(said.last == "e begins")
  }

  @Test func `jobs begin together if what actions may take meanwhile is there, too`() {
    var begun: [String] = []
    var most = 50
    let desk = MemoryDesk(mostTogether: { most }) { $0 <= 100 }
    func ask(_ name: String, _ bytes: Int) {
      desk.request(bytes) {
        begun.append(name)
      } orElse: {
        begun.append("not \(name)")
      }
    }
    // One that is larger begins alone.
    ask("a", 80)
    desk.finished(80)
    ask("b", 30)
    ask("c", 30)
    #expect(begun == ["a", "b"])
    desk.finished(30)
    #expect(begun == ["a", "b", "c"])
    most = 60
    ask("d", 30)
    #expect(begun == ["a", "b", "c", "d"])
  }

  @Test func `more memory than there is cannot be allocated`() {
    #expect(Memory.canAllocate(1 << 21))
    #expect(!Memory.canAllocate(1 << 60))
  }
}
