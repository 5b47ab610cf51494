import Glibc
public import Records
import Values
import Wire

// A file of one page beside the journal, mapped into memory, so that a write costs a few
// instructions and survives the process, whatever ends it. The kernel writes the page to the disk
// at some time: a crash of the machine may leave an older one, all of which was true once.
//
//     words 0 to 2    the action that is being reduced: its number, and its session's token
//     word 3          whether a policy has held
//     word 4          the seal of that action
//     words 8 to 12   the newest durable action, in the first of two places that are used in turn
//     words 16 to 20  the second
//     words 24 to 28  the action that is being foreseen beside the loop, the seal in the last
//
// A reducer that traps ends the process; its client reconnects and resends the action: a crash
// loop. So the next run reads from the file which action was being reduced.
//
// SQLite treats a write-ahead log as empty if its head is lost or the file is missing. So the next
// run compares the journal with the mark of what was durable.

/// The newest action that the journal has made safe against a crash of the machine.
package struct DurableMark: Hashable, Sendable {
  package var epoch: UInt64
  /// The run that made it durable.
  package var run: UInt64
  package var sequence: UInt64
  /// The revision after it.
  package var revision: UInt64

  package init(epoch: UInt64, run: UInt64, sequence: UInt64, revision: UInt64) {
    self.epoch = epoch
    self.run = run
    self.sequence = sequence
    self.revision = revision
  }
}

/// Memory of a state directory that outlives the process.
///
/// Unchecked: the action's words are written on the loop's thread alone, the mark's on the thread
/// that has the journal alone, and the memory lives as long as the object.
public final class MarkerFile: @unchecked Sendable {
  private let words: UnsafeMutablePointer<UInt64>
  /// The index of the mark that is written next.
  private var nextPlace: Int
  private static let byteCount = 4096
  private static let places = [8, 16]

  private static func path(_ directory: String) -> String { directory + "/standing" }

  /// Map the file of a state directory; it is created if it is missing.
  package init(directory: String) throws(JournalError) {
    let path = Self.path(directory)
    let descriptor: Int32
    do throws(OwnFile.Failure) {
      descriptor = try OwnFile.open(path)
    } catch {
      throw error.journalError(path, advice: "Remove it, or name another directory.")
    }
    defer { close(descriptor) }
    // Room on the disk must be certain: a page that cannot be written would end the process.
    let status = posix_fallocate(descriptor, 0, off_t(Self.byteCount))
    guard status == 0 else { throw OwnFile.Failure.system(status).journalError(path) }
    let memory = mmap(
      nil, Self.byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
    guard let memory, memory != MAP_FAILED else {
      throw OwnFile.Failure.system(errno).journalError(path)
    }
    words = memory.bindMemory(to: UInt64.self, capacity: Self.byteCount / 8)
    nextPlace = Self.places[0]
    // The older mark is overwritten: the newer one must survive that.
    if let durable, Self.mark(at: Self.places[0], words) == durable { nextPlace = Self.places[1] }
  }

  deinit { munmap(words, Self.byteCount) }

  /// Whether a state directory has been used: the file comes with the journal.
  public static func exists(in directory: String) -> Bool { access(path(directory), F_OK) == 0 }

  // MARK: The action in flight

  /// The action that the last run was reducing when it ended.
  public var actionInFlight: SessionAction? { InFlightActionMarker.action(in: words) }

  /// The action that it was foreseeing then.
  public var actionForeseen: SessionAction? {
    InFlightActionMarker.action(in: words, at: InFlightActionMarker.foreseenPlace)
  }

  /// Notes the action about to be reduced. Must not be used after this object is gone.
  public var inFlight: InFlightActionMarker { InFlightActionMarker(words) }

  public func noteInFlight(_ action: SessionAction) { inFlight.note(action) }

  public func clearInFlight() { words[0] = 0 }

  // MARK: Policies

  /// Whether a policy has ever hidden something from the mirrors of this directory's state: their
  /// contents may then be partial.
  public var hasHadPolicy: Bool { words[3] != 0 }

  public func notePolicy() {
    words[3] = 1
    msync(words, Self.byteCount, MS_SYNC)
  }

  // MARK: The durable mark

  /// The newest durable action; nil if none has been noted.
  package var durable: DurableMark? { Self.newest(words) }

  private static func newest(_ words: UnsafePointer<UInt64>) -> DurableMark? {
    places.compactMap { mark(at: $0, words) }.max { ($0.run, $0.sequence) < ($1.run, $1.sequence) }
  }

  /// Note that everything up to an action is durable. The process may be killed at any moment: one
  /// of the two copies then has the mark before.
  package func noteDurable(_ mark: DurableMark) {
    let place = words + nextPlace
    place[4] = 0
    (place[0], place[1], place[2], place[3]) = (mark.epoch, mark.run, mark.sequence, mark.revision)
    place[4] = mark.seal
    nextPlace = nextPlace == Self.places[0] ? Self.places[1] : Self.places[0]
  }

  /// Clear the durable mark, because another journal begins, or an administrator has given up a
  /// part of this one.
  package func clearDurable() {
    for place in Self.places { for word in 0..<5 { words[place + word] = 0 } }
    msync(words, Self.byteCount, MS_SYNC)
  }

  private static func mark(at place: Int, _ words: UnsafePointer<UInt64>) -> DurableMark? {
    let mark = DurableMark(
      epoch: words[place], run: words[place + 1], sequence: words[place + 2],
      revision: words[place + 3])
    return words[place + 4] == mark.seal ? mark : nil
  }

  /// The mark of a state directory, read without changing it; nil if there is none.
  package static func durable(in directory: String) -> DurableMark? {
    let descriptor = open(path(directory), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var words = [UInt64](repeating: 0, count: byteCount / 8)
    let count = words.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
    return count == byteCount ? newest(words) : nil
  }
}

extension DurableMark {
  /// A hash of the mark's fields, never 0.
  fileprivate var seal: UInt64 {
    var seal = Seal(epoch: epoch)
    for word in [run, sequence, revision] { seal.add(word) }
    return seal.value | 1
  }
}
