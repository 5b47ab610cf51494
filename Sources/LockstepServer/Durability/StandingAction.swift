import Glibc
import Sessions
import Wire

// A reducer that traps takes the process with it, its client comes back and sends the action again:
// a crash loop. So each action of a client stands in memory that outlives the process, a mapped
// file, while it is reduced; the next run reads there what was being done. The kernel writes the
// page some time: a crash of the machine may leave an old one, a crash of the process never does.
//
//     word 0, 1, 2: the action's number, and its session's token     word 3: whether a policy held

/// The action that is being reduced, where a dead process's successor can read it.
///
/// Unchecked: the memory is written on the loop's thread alone; `value` never changes, and the
/// memory lives as long as the object.
final class StandingAction: @unchecked Sendable {
  private let words: UnsafeMutablePointer<UInt64>
  private static let byteCount = 4096

  /// Map the file of a state directory, and take from it what stood there.
  init(directory: String) throws(DaemonError) {
    let path = directory + "/standing"
    func fail() -> DaemonError {
      DaemonError("cannot map \(path): \(String(cString: strerror(errno)))")
    }
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw fail() }
    defer { close(descriptor) }
    // Room on the disk must be certain: a page that cannot be written would end the process.
    errno = posix_fallocate(descriptor, 0, Self.byteCount)
    guard errno == 0 else { throw fail() }
    let memory = mmap(
      nil, Self.byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
    guard let memory, memory != MAP_FAILED else { throw fail() }
    words = memory.bindMemory(to: UInt64.self, capacity: Self.byteCount / 8)
  }

  /// Whether a state directory has been used: the file comes with the journal.
  static func isThere(_ directory: String) -> Bool { access(directory + "/standing", F_OK) == 0 }

  deinit { munmap(words, Self.byteCount) }

  /// What stands there: what the last run was doing when it ended.
  var action: SessionAction? {
    guard words[0] != 0 else { return nil }
    return SessionAction(session: SessionToken(high: words[1], low: words[2]), number: words[0])
  }

  func set(_ action: SessionAction) {
    words[1] = action.session.high
    words[2] = action.session.low
    // Last: numbers begin with 1.
    words[0] = action.number
  }

  func clear() { words[0] = 0 }

  // MARK: Policies

  /// Whether a policy has ever hidden something from the mirrors of this directory's state: what they
  /// have may then be a part.
  var hasHadPolicy: Bool { words[3] != 0 }

  func notePolicy() {
    words[3] = 1
    msync(words, Self.byteCount, MS_SYNC)
  }
}
