import CSQLite
import Glibc

/// A file beside the journal that is written through the layer of the system through which SQLite
/// writes its own, so that whatever can fail there can fail here. Used by one thread at a time.
final class SystemFile {
  let path: String
  /// Made once the file is there: SQLite's layer keeps the address of the name.
  private let name: UnsafeMutablePointer<CChar>
  private let layer: UnsafeMutablePointer<sqlite3_vfs>
  private let file: UnsafeMutablePointer<sqlite3_file>

  /// Open a file for reading and writing; it is made, with the rights of the journal, if it is
  /// missing. `vfs` names the layer; nil is the system's.
  init(_ path: String, vfs: String?) throws(JournalError) {
    guard let layer = sqlite3_vfs_find(vfs), let name = strdup(path) else {
      throw JournalError(.failed, "\(path): cannot be opened: there is no memory.")
    }
    let size = max(Int(layer.pointee.szOsFile), MemoryLayout<sqlite3_file>.size)
    let memory = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
    memory.initializeMemory(as: UInt8.self, repeating: 0, count: size)
    file = memory.assumingMemoryBound(to: sqlite3_file.self)
    (self.path, self.layer, self.name) = (path, layer, name)
    // What belongs to a log: its name is made durable with its first synchronisation.
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL
    var granted: Int32 = 0
    try check(layer.pointee.xOpen(layer, name, file, flags, &granted), "cannot be opened")
    guard granted & SQLITE_OPEN_READWRITE != 0 else {
      throw JournalError(.unreachable, "\(path): may not be written.")
    }
  }

  deinit {
    _ = file.pointee.pMethods?.pointee.xClose(file)
    UnsafeMutableRawPointer(file).deallocate()
    free(name)
  }

  /// Write bytes at an offset. They reach the disk with `synchronize`.
  func write(_ bytes: [UInt8], at offset: Int) throws(JournalError) {
    guard let methods = file.pointee.pMethods else { return }
    try check(
      methods.pointee.xWrite(file, bytes, Int32(bytes.count), Int64(offset)), "cannot be written")
  }

  /// Have everything that was written on the disk when this returns.
  func synchronize() throws(JournalError) {
    guard let methods = file.pointee.pMethods else { return }
    try check(
      methods.pointee.xSync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY),
      "cannot be synchronised")
  }

  /// Whether these bytes are at an offset.
  func has(_ bytes: [UInt8], at offset: Int) -> Bool {
    guard let methods = file.pointee.pMethods else { return false }
    return withUnsafeTemporaryAllocation(byteCount: bytes.count, alignment: 1) { found in
      methods.pointee.xRead(file, found.baseAddress, Int32(found.count), Int64(offset)) == SQLITE_OK
        && bytes.areBytes(of: found)
    }
  }

  private func check(_ code: Int32, _ what: String) throws(JournalError) {
    guard code != SQLITE_OK else { return }
    let number = layer.pointee.xGetLastError?(layer, 0, nil) ?? 0
    let isFull = code & 0xff == SQLITE_FULL || number == ENOSPC || number == EDQUOT
    throw JournalError(
      isFull ? .full : .failed,
      "\(path): \(what): \(String(cString: sqlite3_errstr(code)))"
        + (number == 0 ? "." : " (\(SystemFailure(number)))."),
      advice: isFull
        ? "Make room on the file system; a daemon that runs tries again by itself."
        : "Look for errors of the disk in the system's log; the file must be opened anew.")
  }
}
