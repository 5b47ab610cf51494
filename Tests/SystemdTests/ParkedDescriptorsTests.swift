import Glibc
import Systemd
import Testing

/// Many descriptors parked in one.
@Suite struct ParkedDescriptorsTests {
  /// The read ends of pipes, each with its number as a byte.
  private func pipes(_ count: Int) throws -> [(number: UInt64, descriptor: Int32)] {
    try (0..<count).map { number in
      var ends: [Int32] = [-1, -1]
      try #require(pipe(&ends) == 0)
      var byte = UInt8(truncatingIfNeeded: number)
      #expect(write(ends[1], &byte, 1) == 1)
      close(ends[1])
      return (UInt64(number) << 32, ends[0])
    }
  }

  @Test(arguments: [0, 1, 253, 254, 900])
  func `parked descriptors are taken out with their numbers`(count: Int) throws {
    let given = try pipes(count)
    let parked = try ParkedDescriptors.park(given)
    defer { close(parked) }
    for entry in given { close(entry.descriptor) }
    let taken = ParkedDescriptors.take(parked)
    defer { for entry in taken { close(entry.descriptor) } }
    #expect(taken.map(\.number) == given.map(\.number))
    for (index, entry) in taken.enumerated() {
      var byte: UInt8 = 0
      #expect(read(entry.descriptor, &byte, 1) == 1 && byte == UInt8(truncatingIfNeeded: index))
      #expect(fcntl(entry.descriptor, F_GETFD) & FD_CLOEXEC != 0)
    }
    #expect(ParkedDescriptors.take(parked).isEmpty)
  }

  @Test func `a descriptor that holds none gives none`() throws {
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    #expect(ParkedDescriptors.take(ends[0]).isEmpty)
    #expect(ParkedDescriptors.take(-1).isEmpty)
    // Bytes without descriptors, which our code never sends.
    var pair: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &pair) == 0)
    defer { close(pair[1]) }
    let text: [UInt8] = Array(repeating: 7, count: 40)
    #expect(write(pair[0], text, text.count) == text.count)
    close(pair[0])
    #expect(ParkedDescriptors.take(pair[1]).isEmpty)
  }

  @Test func `an invalid descriptor is not parked`() {
    #expect(throws: SystemError.self) {
      _ = try ParkedDescriptors.park([(number: 1, descriptor: 1 << 20)])
    }
  }
}
