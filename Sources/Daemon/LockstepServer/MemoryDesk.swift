import Glibc

/// Gives memory to work beside the loop that takes much of it, so that no two begin which together
/// would take more than there is. Belongs to the loop's thread.
final class MemoryDesk {
  private struct Applicant {
    let bytes: Int
    let begin: () -> Void
    let refuse: () -> Void
  }

  /// What has been given to work that has not ended.
  private var given = 0
  private var waiting: [Applicant] = []
  private var isServing = false
  private let canAllocate: (Int) -> Bool

  /// `canAllocate` says whether there are so many bytes more.
  init(canAllocate: @escaping (Int) -> Bool = Memory.canAllocate) { self.canAllocate = canAllocate }

  /// Have work begin that takes so many bytes: at once, or behind what goes on; or have it refused,
  /// if it would not have them alone. `finished` must follow its end.
  func request(
    _ bytes: Int, begin: @escaping () -> Void, orElse refuse: @escaping () -> Void
  ) {
    waiting.append(Applicant(bytes: bytes, begin: begin, refuse: refuse))
    serve()
  }

  /// Work has ended that was given so many bytes.
  func finished(_ bytes: Int) {
    given -= bytes
    serve()
  }

  private func serve() {
    // What begins may end at once, or ask for more.
    if isServing { return }
    isServing = true
    defer { isServing = false }
    while let first = waiting.first {
      if canAllocate(first.bytes + given) {
        given += first.bytes
        waiting.removeFirst()
        first.begin()
      } else if given == 0 {
        waiting.removeFirst()
        first.refuse()
      } else {
        return
      }
    }
  }
}
