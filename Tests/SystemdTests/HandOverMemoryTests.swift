import Glibc
import Systemd
import Testing

@Suite struct HandOverMemoryTests {
  private let parts: [[UInt8]] = [
    Array("state ".utf8), [], [UInt8](repeating: 7, count: 200_000), [0],
  ]

  @Test func `memory is read back as it was written`() throws {
    let memory = Descriptors([try HandOverMemory.make(parts)])
    #expect(try HandOverMemory.read(memory.numbers[0], limit: 400_000) == Array(parts.joined()))
    // Reading twice works, because it does not move the offset that the next process would share.
    #expect(try HandOverMemory.read(memory.numbers[0], limit: 200_007) == Array(parts.joined()))
    #expect(fcntl(memory.numbers[0], F_GETFD) == FD_CLOEXEC)
  }

  @Test func `memory may be empty`() throws {
    let memory = Descriptors([try HandOverMemory.make([])])
    #expect(try HandOverMemory.read(memory.numbers[0], limit: 0) == [])
  }

  @Test func `no process can change the memory`() throws {
    let memory = Descriptors([try HandOverMemory.make(parts)])
    #expect(write(memory.numbers[0], [1], 1) == -1)
    #expect(errno == EPERM)
    #expect(ftruncate(memory.numbers[0], 1) == -1)
    #expect(errno == EPERM)
    #expect(ftruncate(memory.numbers[0], 400_000) == -1)
    #expect(errno == EPERM)
    // F_ADD_SEALS with the seal against future writes.
    #expect(fcntl(memory.numbers[0], 1033, 16) == -1)
    #expect(errno == EPERM)
  }

  @Test func `memory above the limit is refused before it is read`() throws {
    let memory = Descriptors([try HandOverMemory.make(parts)])
    #expect(throws: HandOverError.tooLarge(bytes: 200_007, limit: 200_006)) {
      _ = try HandOverMemory.read(memory.numbers[0], limit: 200_006)
    }
    #expect(throws: HandOverError.tooLarge(bytes: 200_007, limit: -1)) {
      _ = try HandOverMemory.read(memory.numbers[0], limit: -1)
    }
  }

  @Test func `a descriptor that is no sealed memory is refused`() throws {
    let ends = try pipeEnds()
    #expect(throws: HandOverError.notSealed) {
      _ = try HandOverMemory.read(ends.numbers[0], limit: 100)
    }
    for path in ["/dev/zero", "/", "/proc/self/status", "/dev/shm"] {
      let file = Descriptors([open(path, O_RDONLY | O_CLOEXEC)])
      #expect(throws: HandOverError.notSealed) {
        _ = try HandOverMemory.read(file.numbers[0], limit: 100)
      }
    }
    #expect(throws: HandOverError.notSealed) { _ = try HandOverMemory.read(-1, limit: 100) }
  }

  @Test func `memory with only some of the seals is refused`() throws {
    // tmpfs has a seal too, against further seals.
    var template = Array("/dev/shm/lockstep-systemd-XXXXXX".utf8CString)
    let file = Descriptors([mkstemp(&template)])
    unlink(template)
    #expect(throws: HandOverError.notSealed) {
      _ = try HandOverMemory.read(file.numbers[0], limit: 100)
    }
  }

  @Test func `a name that is too long is an error`() throws {
    let error = #expect(throws: SystemError.self) {
      _ = try HandOverMemory.make([], name: String(repeating: "x", count: 250))
    }
    #expect(error?.code == EINVAL)
  }
}
