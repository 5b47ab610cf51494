import Glibc
import Records
import Values
import Wire

// Theory of operation
//
// A commit of SQLite takes 60,000 instructions, seventeen system calls and a page of the disk, however
// little is in it. So a small commit is appended to a log of our own, beside the journal, and is
// durable with the one synchronisation that it takes. Its batches stay in memory, and go to SQLite
// later, hundreds in one transaction: when no commit waits, with whatever else is written there, or
// when the log is full. Then the log begins anew at its first byte, in a file whose blocks are there
// already, so that a synchronisation writes no metadata.
//
//     head      magic, epoch, run, sequence, chain, seal: six words
//     record    byte count, seal, and so many bytes: whether there is a digest, digest, count, `RowPack`
//     record    ...
//
// Words are of 64 bits, the lowest byte first. `sequence` and `chain` are the last row that SQLite had
// when the log began, and its seal. The seal of a record covers the seal of the one before, and that
// of the first the head's. So a record of an earlier log, which may follow the last of this one, does
// not fit, and neither does one that was being written when the machine died.
//
// Nothing is trusted to the log alone: everything in SQLite comes before it or is in it too. Whoever
// opens the journal passes over the records that SQLite has, and adds those that it has not.

/// The words at the beginning of a commit log: what it goes on from.
struct CommitLogHead: Equatable {
  static let magic: UInt64 = 0x314d_4f43_7453_6b4c
  static let byteCount = 48

  var epoch: UInt64
  /// The run of the daemon that wrote it. A later run has everything of it in SQLite.
  var run: UInt64
  /// The last action in SQLite when the log began, and the seal of its row.
  var sequence: UInt64
  var chain: UInt64

  var words: [UInt64] { [Self.magic, epoch, run, sequence, chain] }

  var seal: UInt64 {
    var seal = Seal(epoch: epoch)
    for word in words { seal.add(word) }
    return seal.value
  }
}

/// The newest small commits, synchronised, until SQLite has them. Used by one thread at a time.
final class CommitLog {
  /// The bytes of the file: some thousand small commits.
  static let byteCount = 512 << 10
  /// Larger commits go to SQLite at once: what it takes is little beside them.
  private static let (rowLimit, byteLimit) = (64, 16 << 10)
  /// The bytes of records before each pack.
  static let recordHeadBytes = 16

  static func path(of journal: String) -> String { journal + "-commits" }

  private let file: SystemFile
  private let identity: FileIdentity
  // Used by one thread at a time, and each of these is read or changed at an instant, by what runs no code of
  // others: no two accesses can overlap, and their checks took a tenth of a durable action.
  /// Where the next record goes; 0 before the head is written.
  @exclusivity(unchecked) private(set) var end = 0
  /// The seal of the last record, or of the head.
  @exclusivity(unchecked) private var chain: UInt64 = 0
  /// The head of the last record, and where it is.
  @exclusivity(unchecked) private var last: (head: [UInt8], offset: Int)?
  /// What the next commit writes, at `end`, and then the seal and the head of its last record.
  @exclusivity(unchecked) private var draft: [UInt8] = []
  @exclusivity(unchecked) private var draftChain: UInt64 = 0
  @exclusivity(unchecked) private var draftLast: (head: [UInt8], offset: Int)?
  @exclusivity(unchecked) private var pack = RowPack()
  @exclusivity(unchecked) private var seal = Seal(epoch: 0)

  /// Open the log beside a journal; its blocks are made if they are missing: then it is written and
  /// synchronised whole. Its contents must be in SQLite.
  init(beside journal: String, vfs: String?) throws(JournalError) {
    let path = Self.path(of: journal)
    _ = try JournalDirectory.checkFile(path)
    file = try SystemFile(path, vfs: vfs)
    if JournalDirectory.size(path) < Self.byteCount {
      let zeros = [UInt8](repeating: 0, count: 64 << 10)
      for offset in stride(from: 0, to: Self.byteCount, by: zeros.count) {
        try file.write(zeros, at: offset)
      }
      try file.synchronize()
    }
    guard let identity = FileIdentity(path) else {
      throw JournalError(.unreachable, "\(path): has vanished.")
    }
    self.identity = identity
  }

  /// Whether batches are to go to the log: few rows, and nothing that is not a row.
  static func suits(_ batches: [JournalBatch]) -> Bool {
    var (rows, bytes) = (0, 0)
    for index in batches.indices {
      guard batches[index].sessions.isEmpty, batches[index].forgotten.isEmpty else { return false }
      rows += batches[index].rows.count
      bytes += batches[index].bytes.count
    }
    return rows > 0 && rows <= rowLimit && bytes <= byteLimit
  }

  /// Begin a commit, of a log that goes on from `head` if it is the first one.
  func begin(_ head: @autoclosure () -> CommitLogHead) {
    draft.removeAll(keepingCapacity: true)
    draftChain = chain
    guard end == 0 else { return }
    let head = head()
    seal = Seal(epoch: head.epoch)
    for word in head.words { append(word) }
    draftChain = head.seal
    append(draftChain)
  }

  /// Add a batch to the commit. `number` gives the number of a row's session. Returns false if it does
  /// not fit: then nothing may be committed.
  func add(
    _ batch: JournalBatch,
    number: (SessionToken?) throws(JournalError) -> UInt64?
  ) throws(JournalError) -> Bool {
    pack.removeAll()
    let isPacked = try batch.forEachRow { row, bytes, isLast throws(JournalError) in
      pack.add(
        row, bytes, session: try number(row.pointee.answer?.session),
        turn: isLast ? batch.revision : nil)
    }
    if !isPacked { return false }
    let start = draft.count
    append(0)
    append(0)
    append(batch.digest == nil ? 0 : 1)
    append(batch.digest?.rawValue ?? 0)
    append(UInt64(pack.count))
    draft.append(contentsOf: pack.bytes)
    let body = start + Self.recordHeadBytes
    draftChain = CommitRecords.seal(draft[body...], after: draftChain, &seal)
    replace(UInt64(draft.count - body), at: start)
    replace(draftChain, at: start + 8)
    draftLast = (Array(draft[start..<body]), end + start)
    return end + draft.count <= Self.byteCount
  }

  /// Write the batches that were added since `begin`, and synchronise them.
  func commit() throws(JournalError) {
    try file.write(draft, at: end)
    try file.synchronize()
    end += draft.count
    (chain, last) = (draftChain, draftLast)
  }

  /// Give up the commit that was begun.
  func abandon() { draft.removeAll(keepingCapacity: true) }

  /// Begin anew at the first byte: SQLite has everything.
  func restart() {
    end = 0
    last = nil
  }

  /// The damage to the log since the last commit; nil when there is none. Two system calls.
  var damage: String? {
    guard FileIdentity(file.path) == identity else {
      return "\(file.path) has vanished, or another file is there. What it held is kept anew from "
        + "memory; see to it that no other program removes it."
    }
    guard end > 0, let last, !file.has(last.head, at: last.offset) else { return nil }
    return "\(file.path): another program has cut it or written over it. What it held is kept anew "
      + "from memory; see to it that no other program writes there."
  }

  private func append(_ word: UInt64) {
    withUnsafeBytes(of: word.littleEndian) { draft.append(contentsOf: $0) }
  }

  private func replace(_ word: UInt64, at offset: Int) {
    draft.withUnsafeMutableBytes {
      $0.storeBytes(of: word.littleEndian, toByteOffset: offset, as: UInt64.self)
    }
  }
}

/// The records of a commit log, as far as they fit.
struct CommitRecords {
  struct Record {
    /// The digest at the end of the turn.
    var digest: Digest?
    var count: Int
    var pack: ArraySlice<UInt8>
  }

  let head: CommitLogHead
  private(set) var records: [Record] = []

  /// Read the log beside a journal; nil if there is none, or its head is none: then everything is in
  /// SQLite. O(its bytes); it may be written meanwhile.
  init?(beside journal: String) throws(JournalError) {
    let path = CommitLog.path(of: journal)
    guard try JournalDirectory.checkFile(path) else { return nil }
    self.init(try JournalDirectory.read(path, limit: CommitLog.byteCount))
  }

  init?(_ bytes: [UInt8]) {
    guard bytes.count >= CommitLogHead.byteCount, Self.word(bytes, 0) == CommitLogHead.magic else {
      return nil
    }
    head = CommitLogHead(
      epoch: Self.word(bytes, 8), run: Self.word(bytes, 16), sequence: Self.word(bytes, 24),
      chain: Self.word(bytes, 32))
    guard head.seal == Self.word(bytes, 40) else { return nil }
    var seal = Seal(epoch: head.epoch)
    var (offset, chain) = (CommitLogHead.byteCount, head.seal)
    while bytes.count - offset >= CommitLog.recordHeadBytes {
      let body = offset + CommitLog.recordHeadBytes
      guard let count = Int(exactly: Self.word(bytes, offset)), count >= 24,
        count <= bytes.count - body,
        Self.seal(bytes[body..<body + count], after: chain, &seal) == Self.word(bytes, offset + 8),
        let rows = Int(exactly: Self.word(bytes, body + 16))
      else { break }
      records.append(
        Record(
          digest: Self.word(bytes, body) == 0 ? nil : Digest(Self.word(bytes, body + 8)),
          count: rows, pack: bytes[body + 24..<body + count]))
      chain = Self.word(bytes, offset + 8)
      offset = body + count
    }
  }

  fileprivate static func seal(
    _ body: ArraySlice<UInt8>, after chain: UInt64, _ seal: inout Seal
  ) -> UInt64 {
    seal.begin()
    seal.add(chain)
    body.withUnsafeBytes { seal.add($0) }
    return seal.value
  }

  /// The word at an offset, behind which there are 8 bytes.
  private static func word(_ bytes: [UInt8], _ offset: Int) -> UInt64 {
    bytes.withUnsafeBytes {
      UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
  }
}
