import CBOR

/// A point in a state's history.
///
/// Revisions rise within an epoch. A run is one life of the daemon within it: the next run may
/// repeat a revision that was sent but not kept, with other contents.
public struct Position: Hashable, Sendable, CustomStringConvertible {
  public var epoch: UInt64
  public var run: UInt64
  public var revision: UInt64

  public init(epoch: UInt64, run: UInt64, revision: UInt64) {
    self.epoch = epoch
    self.run = run
    self.revision = revision
  }

  public var description: String { "\(String(epoch, radix: 16)):\(run):\(revision)" }

  func encode(into encoder: inout CBOREncoder) {
    encoder.array(3)
    encoder.encode(epoch)
    encoder.encode(run)
    encoder.encode(revision)
  }

  init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    guard try decoder.array() == 3 else {
      throw CBORError(.notAllowed("a position is [epoch, run, revision]"), at: start)
    }
    epoch = try decoder.unsigned()
    run = try decoder.unsigned()
    revision = try decoder.unsigned()
    decoder.close()
  }
}

/// A random name for a client's session. A client that has the token can resume the session, if the
/// user is the same.
public struct SessionToken: Hashable, Sendable, CustomStringConvertible {
  public var high: UInt64
  public var low: UInt64

  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// The first digits only: the whole token is a secret.
  public var description: String { String(high >> 32, radix: 16) + "…" }

  func encode(into encoder: inout CBOREncoder) {
    encoder.head(.bytes, 16)
    for word in [high, low] {
      withUnsafeBytes(of: word.bigEndian) { encoder.bytes.append(contentsOf: $0) }
    }
  }

  init(from decoder: inout CBORDecoder) throws(CBORError) {
    let start = decoder.offset
    let bytes = try decoder.byteString()
    guard bytes.count == 16 else {
      throw CBORError(.notAllowed("a session token has 16 bytes, not \(bytes.count)"), at: start)
    }
    high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
  }
}

/// The process at the other end of a connection, as reported by the kernel.
public struct Peer: Hashable, Sendable, CustomStringConvertible {
  public var pid: UInt64
  public var uid: UInt64
  public var gid: UInt64
  /// The supplementary groups. They never travel.
  public var groups: [UInt64]

  public init(pid: UInt64, uid: UInt64, gid: UInt64, groups: [UInt64] = []) {
    self.pid = pid
    self.uid = uid
    self.gid = gid
    self.groups = groups
  }

  public var description: String { "pid \(pid), uid \(uid)" }
}
