/// Lets one at a time through, in the order of their coming.
actor Turnstile {
  private var isTaken = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  func pass<R: Sendable>(_ body: @Sendable () async throws -> R) async throws -> R {
    if isTaken {
      await withCheckedContinuation { waiting.append($0) }
    }
    isTaken = true
    defer { leave() }
    return try await body()
  }

  private func leave() {
    if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
  }
}
