#if !SANITIZED
  import CAllocator
  import Glibc
  import Testing

  /// How free memory goes back to the system. A sanitizer brings an allocator of its own.
  ///
  /// Each test is a process of its own, because others allocate as much.
  @Suite struct AllocatorTests {
    @Test func `what is freed is known to be unused, and trimmed`() async {
      await #expect(processExitsWith: .success) {
        let blocks = Blocks(count: 6000, bytes: 40_000)
        let used = lockstep_allocator_unused()
        #expect(used < 64 << 20, "what is in use counts as unused: \(used)")
        blocks.freeEveryOther()
        let freed = lockstep_allocator_unused() - used
        #expect(freed > 100 << 20 && freed < 180 << 20, "\(freed)")
        let before = try #require(System.residentBytes)
        #expect(lockstep_allocator_trim())
        let after = try #require(System.residentBytes)
        #expect(after < before - 100 << 20, "\(before) and \(after)")
        #expect(lockstep_allocator_unused() < 8 << 20)
      }
    }

    /// The kernel allows 65,530 mappings, and each hole makes one more.
    @Test func `holes among small blocks split no mapping, and too many are not made`() async {
      await #expect(processExitsWith: .success) {
        // Nothing is written to them, so they take addresses and no memory.
        let blocks = Blocks(count: 80_000, bytes: 16_000, areWritten: false)
        let before = try #require(System.mappings)
        blocks.freeEveryOther()
        let freed = try #require(System.mappings)
        #expect(freed < before + 100, "\(before) and \(freed)")
        #expect(!lockstep_allocator_trim())
        let after = try #require(System.mappings)
        #expect(after < before + 100, "\(before) and \(after)")
        blocks.freeOthers()
        #expect(lockstep_allocator_trim(), "one hole is not too many")
      }
    }

    /// Each has room for one block of its size, and for no larger one.
    @Test func `unused bytes that are not returned do not count`() async {
      await #expect(processExitsWith: .success) {
        let blocks = Blocks(count: 66_000, bytes: 40_000, areWritten: false)
        blocks.freeEveryOther()
        #expect(!lockstep_allocator_trim())
        #expect(lockstep_allocator_unused() == 0)
        blocks.freeOthers()
        #expect(lockstep_allocator_trim())
      }
    }

    /// jemalloc does not join free pieces of less than 16 KB with others of their kind.
    @Test(arguments: [
      32, 48, 100, 1000, 3000, 5000, 6000, 7000, 8000, 10_000, 12_000, 14_000, 16_000,
    ])
    func `small blocks that are all free are few pieces`(bytes: Int) async {
      await #expect(processExitsWith: .success) { [bytes] in
        let before = try #require(System.mappedBytes)
        let count = min(4_000_000, 400_000_000 / bytes)
        let blocks = Blocks(count: count, bytes: bytes, areWritten: false)
        #expect(try #require(System.mappedBytes) > before + count * bytes)
        blocks.freeEveryOther()
        blocks.freeOthers()
        #expect(lockstep_allocator_trim())
        let after = try #require(System.mappedBytes)
        #expect(after < before + 64 << 20, "\(before) and \(after)")
      }
    }

    /// Nor do those that were made before count for nothing.
    @Test func `several trims do not make too many holes either`() async {
      await #expect(processExitsWith: .success) {
        var blocks: [Blocks] = []
        var trims = 0
        for _ in 0..<5 {
          blocks.append(Blocks(count: 20_000, bytes: 16_000, areWritten: false))
          blocks.last?.freeEveryOther()
          if lockstep_allocator_trim() { trims += 1 }
        }
        let mappings = try #require(System.mappings)
        #expect(trims >= 1 && mappings < 30_100, "\(trims) trims, \(mappings) mappings")
      }
    }

    /// Their addresses are limited too: `ulimit -v`, `LimitAS=`, `LimitDATA=`.
    @Test func `large blocks are unmapped at once`() async {
      await #expect(processExitsWith: .success) {
        // The arena of large blocks is made for the first one.
        Blocks(count: 2, bytes: 2 << 20).freeEveryOther()
        let before = try #require(System.mappedBytes)
        let blocks = Blocks(count: 100, bytes: 2 << 20)
        #expect(try #require(System.mappedBytes) > before + 190 << 20)
        blocks.freeEveryOther()
        let after = try #require(System.mappedBytes)
        #expect(after < before + 130 << 20, "\(before) and \(after)")
      }
    }
  }

  private struct Blocks {
    private let addresses: [UnsafeMutableRawPointer?]

    init(count: Int, bytes: Int, areWritten: Bool = true) {
      addresses = (0..<count).map { _ in malloc(bytes) }
      if !areWritten { return }
      for case let block? in addresses { memset(block, 1, bytes) }
    }

    func freeEveryOther() {
      for index in stride(from: 0, to: addresses.count, by: 2) { free(addresses[index]) }
    }

    func freeOthers() {
      for index in stride(from: 1, to: addresses.count, by: 2) { free(addresses[index]) }
    }
  }

  /// What the kernel says about this process.
  private enum System {
    static var residentBytes: Int? { kilobytes("VmRSS:", "/proc/self/status") }

    /// The bytes of its address space.
    static var mappedBytes: Int? { kilobytes("VmSize:", "/proc/self/status") }

    static var mappings: Int? { lines("/proc/self/maps")?.count }

    private static func kilobytes(_ name: String, _ path: String) -> Int? {
      let line = lines(path)?.first { $0.hasPrefix(name) }
      return (line?.split(separator: " ").dropFirst().first).flatMap { Int($0) }.map { $0 << 10 }
    }

    private static func lines(_ path: String) -> [Substring]? {
      guard let file = fopen(path, "r") else { return nil }
      defer { fclose(file) }
      var text = [UInt8](repeating: 0, count: 1 << 23)
      let count = fread(&text, 1, text.count, file)
      return String(decoding: text[..<count], as: UTF8.self).split(separator: "\n")
    }
  }
#endif
