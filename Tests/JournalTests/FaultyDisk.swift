import CSQLite
import Glibc
import Values

// A disk that fails on request, as SQLite sees it: a VFS around the system's own.
//
// SQLite's writes reach real files at once, as they reach a page cache. For every file (by its
// inode, because names change) the disk remembers the old content of each sector written since the
// last sync. When the machine "crashes", each of those sectors is at random kept, restored or torn;
// likewise the size of the file, and whether a file created or deleted since then exists. A failed
// sync leaves its data in the page cache alone: it can be read, a later sync does not report it,
// and a crash loses it. Linux does the same.

/// The faults.
enum Misfortune: Equatable {
  /// The process dies: nothing written is lost.
  case processCrash
  /// The machine dies: data that was not synced may be lost.
  case machineCrash
  /// One call fails, and the next ones succeed.
  case error
  case fullDisk
}

/// SQLite's extended error codes, whose macros Swift does not import.
private enum Code {
  static let write = SQLITE_IOERR | 3 << 8
  static let synchronize = SQLITE_IOERR | 4 << 8
  static let truncate = SQLITE_IOERR | 6 << 8
  static let delete = SQLITE_IOERR | 10 << 8
  static let mapIndex = SQLITE_IOERR | 21 << 8
}

final class FaultyDisk {
  static let sectorSize = 512

  /// A file that has been written.
  struct Inode {
    /// The old content of sectors written since the last sync; shorter at the old end of the file.
    var dirty: [Int: [UInt8]] = [:]
    /// The old content of sectors whose sync failed.
    var lost: [Int: [UInt8]] = [:]
    var durableSize = 0
    /// Whether a crash may lose its name.
    var isNew = false
    /// Its place among the files in the order in which they were opened first. In that of their numbers
    /// the same seed would give another crash on another file system.
    var place = 0
  }

  let name: String
  /// The number of calls so far that could have failed.
  private(set) var callCount = 0
  /// The number of the call that fails.
  var unluckyCall: Int?
  var misfortune = Misfortune.machineCrash
  /// Files with names that end so are never synchronised, and nobody is told: a mutant.
  var neverSyncs: String?
  private(set) var hasCrashed = false
  /// Whether the fault has happened.
  private(set) var hasStruck = false

  private var random: SplitMix64
  private var inodes: [UInt: Inode] = [:]
  private var paths: [UInt: String] = [:]
  private var openedCount = 0
  /// Deleted files with their content, as long as a crash may bring them back.
  private var deleted: [(path: String, bytes: [UInt8])] = []
  private let vfs: UnsafeMutablePointer<sqlite3_vfs>
  private let methods: UnsafeMutablePointer<sqlite3_io_methods>
  private let cName: UnsafeMutablePointer<CChar>
  fileprivate let base: UnsafeMutablePointer<sqlite3_vfs>
  fileprivate var methodTable: UnsafePointer<sqlite3_io_methods> { UnsafePointer(methods) }

  init(seed: UInt64) {
    random = SplitMix64(seed)
    vfs = .allocate(capacity: 1)
    methods = .allocate(capacity: 1)
    name = "faulty-\(UInt(bitPattern: vfs))-\(seed)"
    cName = strdup(name)
    base = sqlite3_vfs_find(nil)
    methods.initialize(to: FaultyFile.methods)
    vfs.initialize(to: base.pointee)
    vfs.pointee.pNext = nil
    vfs.pointee.zName = UnsafePointer(cName)
    vfs.pointee.szOsFile = Int32(MemoryLayout<FaultyFile.Memory>.size)
    vfs.pointee.pAppData = Unmanaged.passUnretained(self).toOpaque()
    vfs.pointee.xOpen = { vfs, name, file, flags, outFlags in
      FaultyDisk.of(vfs).open(name, file, flags, outFlags)
    }
    vfs.pointee.xDelete = { vfs, name, synchronizes in
      FaultyDisk.of(vfs).delete(name, synchronizes)
    }
    vfs.pointee.xAccess = { vfs, name, flags, result in
      let base = FaultyDisk.of(vfs).base
      return base.pointee.xAccess(base, name, flags, result)
    }
    vfs.pointee.xFullPathname = { vfs, name, count, result in
      let base = FaultyDisk.of(vfs).base
      return base.pointee.xFullPathname(base, name, count, result)
    }
    sqlite3_vfs_register(vfs, 0)
  }

  deinit {
    sqlite3_vfs_unregister(vfs)
    vfs.deallocate()
    methods.deallocate()
    free(cName)
  }

  private static func of(_ vfs: UnsafeMutablePointer<sqlite3_vfs>?) -> FaultyDisk {
    guard let data = vfs?.pointee.pAppData else { preconditionFailure("no disk") }
    return Unmanaged<FaultyDisk>.fromOpaque(data).takeUnretainedValue()
  }

  // MARK: Calls

  enum Verdict {
    case go
    /// Perform the call, then crash.
    case crashAfter
    case fail(Int32)
  }

  /// The outcome of the next call.
  func verdict(error: Int32) -> Verdict {
    if hasCrashed { return .fail(SQLITE_IOERR) }
    callCount += 1
    guard callCount == unluckyCall else { return .go }
    hasStruck = true
    switch misfortune {
    case .processCrash, .machineCrash: return .crashAfter
    case .error: return .fail(error)
    case .fullDisk: return .fail(error == Code.synchronize ? error : SQLITE_FULL)
    }
  }

  private func open(
    _ name: UnsafePointer<CChar>?, _ file: UnsafeMutablePointer<sqlite3_file>?, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    guard let file else { return SQLITE_MISUSE }
    file.pointee.pMethods = nil
    let path = name.map { String(cString: $0) } ?? ""
    var status = stat()
    let exists = stat(path, &status) == 0
    if !exists, flags & SQLITE_OPEN_CREATE != 0 {
      switch verdict(error: SQLITE_CANTOPEN) {
      case .go: break
      case .crashAfter:
        crash()
        return SQLITE_IOERR
      case .fail(let code): return code
      }
    }
    if hasCrashed { return SQLITE_IOERR }
    forgetOthers()
    let inner = FaultyFile(self, path)
    let code = base.pointee.xOpen(base, name, inner.inner, flags, outFlags)
    guard code == SQLITE_OK else { return code }
    inner.isOpen = true
    if stat(path, &status) == 0 {
      inner.inode = UInt(status.st_ino)
      paths[inner.inode] = path
      if inodes[inner.inode] == nil || !exists {
        openedCount += 1
        inodes[inner.inode] = Inode(
          durableSize: Int(status.st_size), isNew: !exists, place: openedCount)
      }
    }
    FaultyFile.install(inner, in: file)
    return SQLITE_OK
  }

  /// The system reuses inode numbers, so the records of former files are dropped.
  private func forgetOthers() {
    for (number, path) in paths where inode(at: path) != number {
      inodes[number] = nil
      paths[number] = nil
    }
  }

  private func delete(_ name: UnsafePointer<CChar>?, _ synchronizes: Int32) -> Int32 {
    switch verdict(error: Code.delete) {
    case .fail(let code): return code
    case .crashAfter:
      crash()
      return SQLITE_IOERR
    case .go: break
    }
    let path = name.map { String(cString: $0) } ?? ""
    var status = stat()
    if stat(path, &status) == 0 {
      // The name has been this file's for good, so that no former one comes back; by now it may have
      // been renamed there, which is durable.
      if inodes[UInt(status.st_ino)]?.isNew != true { deleted.removeAll { $0.path == path } }
      // A crash brings back the content that could be read.
      deleted.append((path, Files.read(path)))
      inodes[UInt(status.st_ino)] = nil
      paths[UInt(status.st_ino)] = nil
    }
    let code = base.pointee.xDelete(base, name, 0)
    if synchronizes != 0 { deleted = [] }
    return code
  }

  // MARK: Sectors

  /// Records the content of a file before it is written or truncated.
  func note(_ file: FaultyFile, _ range: Range<Int>) {
    guard var inode = inodes[file.inode] else { return }
    inodes[file.inode] = nil
    let size = file.size
    for sector
      in (range.lowerBound / Self.sectorSize)..<((range.upperBound + Self.sectorSize - 1)
      / Self.sectorSize)
    where inode.dirty[sector] == nil {
      if let old = inode.lost.removeValue(forKey: sector) {
        inode.dirty[sector] = old
      } else {
        let start = sector * Self.sectorSize
        inode.dirty[sector] = file.read(start..<max(start, min(start + Self.sectorSize, size)))
      }
    }
    inodes[file.inode] = inode
  }

  func synchronized(_ file: FaultyFile) {
    if let neverSyncs, file.path.hasSuffix(neverSyncs) { return }
    inodes[file.inode]?.dirty = [:]
    inodes[file.inode]?.durableSize = file.size
    if inodes[file.inode]?.isNew == true {
      // SQLite also syncs the directory when it has created a file.
      inodes[file.inode]?.isNew = false
      deleted = []
    }
  }

  /// Data whose sync failed is clean to the kernel, and not on the disk.
  func failedToSynchronize(_ file: FaultyFile) {
    guard let dirty = inodes[file.inode]?.dirty else { return }
    inodes[file.inode]?.lost.merge(dirty) { old, _ in old }
    inodes[file.inode]?.dirty = [:]
  }

  // MARK: The crash

  func crash() {
    guard !hasCrashed else { return }
    hasCrashed = true
    guard misfortune != .processCrash else { return }
    for (number, file) in inodes.sorted(by: { $0.value.place < $1.value.place }) {
      guard let path = paths[number], inode(at: path) == number else { continue }
      if file.isNew, random.next() % 2 == 0 {
        unlink(path)
      } else {
        lose(file, of: path)
      }
    }
    for file in deleted where random.next() % 2 == 0 && inode(at: file.path) == nil {
      Files.write(file.bytes, to: file.path)
    }
  }

  private func inode(at path: String) -> UInt? {
    var status = stat()
    return lstat(path, &status) == 0 ? UInt(status.st_ino) : nil
  }

  private func lose(_ inode: Inode, of path: String) {
    var bytes = Files.read(path)
    let written = bytes.count
    let whole = max(written, inode.durableSize)
    bytes += [UInt8](repeating: 0, count: whole - written)
    let old = inode.dirty.merging(inode.lost) { first, _ in first }
    for (sector, before) in old.sorted(by: { $0.key < $1.key }) {
      let start = sector * Self.sectorSize
      let end = min(start + Self.sectorSize, whole)
      guard start < end else { continue }
      var kept = before + [UInt8](repeating: 0, count: Self.sectorSize - before.count)
      switch random.next() % 5 {
      case _ where inode.lost[sector] != nil: break
      case 0, 1: continue
      case 2:
        // Torn: the beginning is new, the rest is old.
        let middle = Int(random.next() % UInt64(end - start))
        kept.replaceSubrange(..<middle, with: bytes[start..<(start + middle)])
      default: break
      }
      bytes.replaceSubrange(start..<end, with: kept[..<(end - start)])
    }
    let size: Int
    switch random.next() % 3 {
    case 0: size = inode.durableSize
    case 1: size = written
    default:
      let low = min(inode.durableSize, written)
      size = low + Int(random.next() % UInt64(whole - low + 1))
    }
    let sizeIsDurable = inode.durableSize == written && inode.lost.isEmpty
    Files.write(Array(bytes[..<(sizeIsDurable ? written : size)]), to: path)
  }
}

/// A file on a faulty disk.
final class FaultyFile {
  /// The part of a file that SQLite allocates.
  struct Memory {
    var methods: UnsafePointer<sqlite3_io_methods>?
    var file: UnsafeMutableRawPointer?
  }

  let disk: FaultyDisk
  let path: String
  var inode: UInt = 0
  var isOpen = false
  /// The system's file.
  let inner: UnsafeMutablePointer<sqlite3_file>

  init(_ disk: FaultyDisk, _ path: String) {
    self.disk = disk
    self.path = path
    let memory = UnsafeMutableRawPointer.allocate(
      byteCount: Int(disk.base.pointee.szOsFile), alignment: 16)
    memory.initializeMemory(as: UInt8.self, repeating: 0, count: Int(disk.base.pointee.szOsFile))
    inner = memory.assumingMemoryBound(to: sqlite3_file.self)
  }

  deinit { UnsafeMutableRawPointer(inner).deallocate() }

  static func install(_ file: FaultyFile, in memory: UnsafeMutablePointer<sqlite3_file>) {
    let opaque = Unmanaged.passRetained(file).toOpaque()
    UnsafeMutableRawPointer(memory).assumingMemoryBound(to: Memory.self).pointee = Memory(
      methods: file.disk.methodTable, file: opaque)
  }

  private static func of(_ file: UnsafeMutablePointer<sqlite3_file>?) -> FaultyFile {
    let memory = UnsafeMutableRawPointer(file)?.assumingMemoryBound(to: Memory.self)
    guard let opaque = memory?.pointee.file else { preconditionFailure("no file") }
    return Unmanaged<FaultyFile>.fromOpaque(opaque).takeUnretainedValue()
  }

  private var real: sqlite3_io_methods { inner.pointee.pMethods.pointee }

  var size: Int {
    var size: sqlite3_int64 = 0
    _ = real.xFileSize(inner, &size)
    return Int(size)
  }

  func read(_ range: Range<Int>) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: range.count)
    guard !range.isEmpty else { return bytes }
    _ = real.xRead(inner, &bytes, Int32(range.count), Int64(range.lowerBound))
    return bytes
  }

  private func write(_ bytes: UnsafeRawPointer?, _ count: Int32, _ offset: Int64) -> Int32 {
    let verdict = disk.verdict(error: Code.write)
    if case .fail(let code) = verdict { return code }
    disk.note(self, Int(offset)..<(Int(offset) + Int(count)))
    let code = real.xWrite(inner, bytes, count, offset)
    if case .crashAfter = verdict {
      disk.crash()
      return SQLITE_IOERR
    }
    return code
  }

  private func truncate(_ size: Int64) -> Int32 {
    let verdict = disk.verdict(error: Code.truncate)
    if case .fail(let code) = verdict { return code }
    disk.note(self, Int(size)..<max(Int(size), self.size))
    let code = real.xTruncate(inner, size)
    if case .crashAfter = verdict {
      disk.crash()
      return SQLITE_IOERR
    }
    return code
  }

  private func synchronize() -> Int32 {
    switch disk.verdict(error: Code.synchronize) {
    case .go:
      disk.synchronized(self)
      return SQLITE_OK
    case .crashAfter:
      disk.crash()
      return SQLITE_IOERR
    case .fail(let code):
      disk.failedToSynchronize(self)
      return code
    }
  }

  private func mapIndex(
    _ region: Int32, _ size: Int32, _ extends: Int32,
    _ result: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
  ) -> Int32 {
    if extends != 0 {
      switch disk.verdict(error: Code.mapIndex) {
      case .fail(let code): return code
      case .crashAfter:
        disk.crash()
        return SQLITE_IOERR
      case .go: break
      }
    }
    return disk.hasCrashed ? SQLITE_IOERR : real.xShmMap(inner, region, size, extends, result)
  }

  static var methods: sqlite3_io_methods {
    var methods = sqlite3_io_methods()
    methods.iVersion = 2
    methods.xClose = { file in
      let object = FaultyFile.of(file)
      let code = object.isOpen ? object.real.xClose(object.inner) : SQLITE_OK
      Unmanaged.passUnretained(object).release()
      return code
    }
    methods.xRead = { file, bytes, count, offset in
      let object = FaultyFile.of(file)
      if object.disk.hasCrashed { return SQLITE_IOERR }
      return object.real.xRead(object.inner, bytes, count, offset)
    }
    methods.xWrite = { FaultyFile.of($0).write($1, $2, $3) }
    methods.xTruncate = { FaultyFile.of($0).truncate($1) }
    methods.xSync = { file, _ in FaultyFile.of(file).synchronize() }
    methods.xFileSize = { file, size in
      let object = FaultyFile.of(file)
      return object.disk.hasCrashed ? SQLITE_IOERR : object.real.xFileSize(object.inner, size)
    }
    methods.xLock = { file, level in
      let object = FaultyFile.of(file)
      return object.disk.hasCrashed ? SQLITE_IOERR : object.real.xLock(object.inner, level)
    }
    methods.xUnlock = { file, level in
      let object = FaultyFile.of(file)
      return object.real.xUnlock(object.inner, level)
    }
    methods.xCheckReservedLock = { file, result in
      let object = FaultyFile.of(file)
      return object.real.xCheckReservedLock(object.inner, result)
    }
    methods.xFileControl = { file, operation, argument in
      let object = FaultyFile.of(file)
      return object.real.xFileControl(object.inner, operation, argument)
    }
    methods.xSectorSize = { _ in Int32(FaultyDisk.sectorSize) }
    methods.xDeviceCharacteristics = { file in
      let object = FaultyFile.of(file)
      return object.real.xDeviceCharacteristics(object.inner)
    }
    methods.xShmMap = { FaultyFile.of($0).mapIndex($1, $2, $3, $4) }
    methods.xShmLock = { file, offset, count, flags in
      let object = FaultyFile.of(file)
      if object.disk.hasCrashed, flags & SQLITE_SHM_UNLOCK == 0 { return SQLITE_IOERR }
      return object.real.xShmLock(object.inner, offset, count, flags)
    }
    methods.xShmBarrier = { file in
      let object = FaultyFile.of(file)
      object.real.xShmBarrier(object.inner)
    }
    methods.xShmUnmap = { file, deletes in
      let object = FaultyFile.of(file)
      return object.real.xShmUnmap(object.inner, object.disk.hasCrashed ? 0 : deletes)
    }
    return methods
  }
}
