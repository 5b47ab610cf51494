import Foundation
import Glibc
import Testing

/// Files as bytes.
enum Files {
  static func read(_ path: String) -> [UInt8] {
    guard let data = FileManager.default.contents(atPath: path) else { return [] }
    return Array(data)
  }

  static func write(_ bytes: [UInt8], to path: String) {
    _ = FileManager.default.createFile(atPath: path, contents: Data(bytes))
  }

  static func makeFolder(_ path: String) throws {
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  /// The offset at which the bytes of `part` begin.
  static func find(_ part: [UInt8], in bytes: [UInt8]) -> Int? {
    guard bytes.count >= part.count else { return nil }
    return (0...(bytes.count - part.count)).first { bytes[$0...].starts(with: part) }
  }
}

/// A small file system in memory.
struct SmallDisk: Sendable {
  let path: String
  private let bytes: Int

  static let isAllowed: Bool = {
    let path = "/tmp/lockstep-mount-\(getpid())"
    mkdir(path, 0o700)
    defer { rmdir(path) }
    guard Glibc.mount("tmpfs", path, "tmpfs", 0, "size=64k") == 0 else { return false }
    return umount2(path, detach) == 0
  }()
  /// MNT_DETACH, MS_REMOUNT and MS_RDONLY.
  private static let (detach, remount, readOnly): (Int32, UInt, UInt) = (2, 32, 1)
  static let comment: Comment = "mounting a small tmpfs is not permitted here"

  init(_ path: String, bytes: Int) throws {
    self.path = path
    self.bytes = bytes
    mkdir(path, 0o700)
    try attach(flags: 0)
  }

  private func attach(flags: UInt) throws {
    guard Glibc.mount("tmpfs", path, "tmpfs", flags, "size=\(bytes),mode=700") == 0 else {
      throw ChildProcess.Failure(description: "cannot mount: \(String(cString: strerror(errno)))")
    }
  }

  func remount(isReadOnly: Bool) throws {
    try attach(flags: Self.remount | (isReadOnly ? Self.readOnly : 0))
  }

  func remove() { umount2(path, Self.detach) }

  /// Leaves no byte free.
  func fill() throws {
    let file = open(path + "/filler", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    defer { close(file) }
    let part = [UInt8](repeating: 0, count: 4096)
    while write(file, part, part.count) > 0 {}
    try #require(errno == ENOSPC)
  }

  /// Leaves about `bytes` bytes free.
  func fill(butFor bytes: Int) throws {
    try fill()
    var status = stat()
    try #require(stat(path + "/filler", &status) == 0)
    try #require(truncate(path + "/filler", max(0, Int(status.st_size) - bytes)) == 0)
  }

  func makeRoom() { unlink(path + "/filler") }
}
