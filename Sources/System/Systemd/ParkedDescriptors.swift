internal import Glibc

/// Stores any number of descriptors, each with a number, in a single one.
///
/// They wait in the queue of a socket whose other end is closed. A manager compares each descriptor
/// that it is to store with all that it stores already, so thousands of them would take it many
/// seconds.
public enum ParkedDescriptors {
  /// A descriptor that holds copies of `descriptors`. The caller owns both these and the result.
  ///
  /// Throws the system's error: `ETOOMANYREFS` when they are more than the files that the process
  /// may have open.
  public static func park(
    _ descriptors: [(number: UInt64, descriptor: Int32)]
  ) throws(SystemError) -> Int32 {
    var ends: [Int32] = [-1, -1]
    let kind = Int32(
      SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    try check(socketpair(AF_UNIX, kind, 0, &ends), "make a pair of sockets")
    let (writer, reader) = (ends[0], ends[1])
    defer { close(writer) }
    var rest = descriptors[...]
    while !rest.isEmpty {
      let part = rest.prefix(DatagramSocket.descriptorLimit)
      let numbers = part.flatMap { entry in
        withUnsafeBytes(of: entry.number.littleEndian) { Array($0) }
      }
      let code = DescriptorMessage.send(numbers, part.map(\.descriptor), to: writer)
      if code == EINTR { continue }
      guard code == 0 else {
        close(reader)
        throw SystemError(code: code, operation: "park \(descriptors.count) descriptors")
      }
      rest = rest.dropFirst(part.count)
    }
    return reader
  }

  /// Take out the descriptors that a parked descriptor holds.
  ///
  /// The caller owns them from now on, and no child inherits them. Those that can no longer be
  /// taken out, as when there are too many open files, are left out.
  public static func take(_ descriptor: Int32) -> [(number: UInt64, descriptor: Int32)] {
    var all: [(number: UInt64, descriptor: Int32)] = []
    while let (numbers, descriptors) = receive(descriptor), !numbers.isEmpty {
      // The kernel may have had no room for the last of them.
      all += zip(numbers, descriptors).map { (number: $0, descriptor: $1) }
      for extra in descriptors.dropFirst(numbers.count) { close(extra) }
    }
    return all
  }

  private static func receive(_ socket: Int32) -> (numbers: [UInt64], descriptors: [Int32])? {
    var numbers = [UInt64](repeating: 0, count: DatagramSocket.descriptorLimit)
    // A header and the greatest number of descriptors, in words.
    var control = [Int](
      repeating: 0,
      count: MemoryLayout<cmsghdr>.size / MemoryLayout<Int>.size
        + (DatagramSocket.descriptorLimit + 1) / 2)
    let received: (bytes: Int, control: Int)? = numbers.withUnsafeMutableBytes { bytes in
      control.withUnsafeMutableBytes { control in
        var part = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
        return withUnsafeMutablePointer(to: &part) { part in
          while true {
            var message = msghdr()
            message.msg_iov = part
            message.msg_iovlen = 1
            message.msg_control = control.baseAddress
            message.msg_controllen = control.count
            let count = recvmsg(socket, &message, Int32(MSG_DONTWAIT) | Int32(MSG_CMSG_CLOEXEC))
            if count < 0 && errno == EINTR { continue }
            return count < 0 ? nil : (count, message.msg_controllen)
          }
        }
      }
    }
    guard let received else { return nil }
    numbers = numbers.prefix(received.bytes / MemoryLayout<UInt64>.size)
      .map { UInt64(littleEndian: $0) }
    let head = MemoryLayout<cmsghdr>.size
    guard received.control >= head else { return (numbers, []) }
    let descriptors = control.withUnsafeBytes { control in
      // The control data is one message, which begins with its length.
      let length = min(control.load(as: Int.self), received.control)
      return stride(from: head, to: length - 3, by: 4).map {
        control.load(fromByteOffset: $0, as: Int32.self)
      }
    }
    return (numbers, descriptors)
  }
}
