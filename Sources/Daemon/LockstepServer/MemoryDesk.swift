import Glibc

/// Grants memory to work off the loop that takes much of it, so that no two jobs begin that together,
/// and with what actions may take meanwhile, would take more than there is. Belongs to the loop's
/// thread.
final class MemoryDesk {
  private struct Applicant {
    let bytes: Int
    let begin: () -> Void
    let refuse: () -> Void
  }

  /// The bytes granted to work that has not ended.
  private var given = 0
  private var waiting: [Applicant] = []
  private var isServing = false
  private let mostTogether: () -> Int
  private let canAllocate: (Int) -> Bool

  /// `mostTogether` returns how many bytes several jobs may take together; `canAllocate` whether this
  /// many more can be allocated.
  init(
    mostTogether: @escaping () -> Int, canAllocate: @escaping (Int) -> Bool = Memory.canAllocate
  ) {
    self.mostTogether = mostTogether
    self.canAllocate = canAllocate
  }

  /// Request memory for work that takes this many bytes. It begins at once, or after other work has
  /// ended, or is refused if it would not get the memory even alone. Call `finished` when it has
  /// ended.
  func request(
    _ bytes: Int, begin: @escaping () -> Void, orElse refuse: @escaping () -> Void
  ) {
    waiting.append(Applicant(bytes: bytes, begin: begin, refuse: refuse))
    serve()
  }

  /// Give back the bytes of work that has ended.
  func finished(_ bytes: Int) {
    given -= bytes
    serve()
  }

  private func serve() {
    // `begin` may end its work at once, or request more.
    if isServing { return }
    isServing = true
    defer { isServing = false }
    while let first = waiting.first {
      let together = first.bytes + given
      if canAllocate(together), given == 0 || together <= mostTogether() {
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
