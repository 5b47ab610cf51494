import EventLoop
import Glibc
import Synchronization

/// Shows on a terminal's standard error the progress of work that takes longer than a second.
final class ProgressBar: Sendable {
  private struct State: Sendable {
    var stage: String
    var done: UInt64 = 0
    var total: UInt64?
    var source: (@Sendable () -> UInt64)?
    var isDrawn = false
    var hasEnded = false
  }

  private let state: Mutex<State>

  init(_ stage: String, _ options: GlobalOptions) {
    state = Mutex(State(stage: stage))
    guard Terminal.isTerminal(STDERR_FILENO), !options.json else { return }
    Task.detached { [weak self] in
      try? await LoopClock().sleep(for: .seconds(1))
      while let self, draw() { try? await LoopClock().sleep(for: .milliseconds(100)) }
    }
  }

  deinit { end() }

  /// Begin another stage, of this many bytes.
  func begin(_ stage: String, of total: UInt64? = nil) {
    state.withLock { state in
      state.stage = stage
      state.total = total
      state.done = 0
      state.source = nil
    }
  }

  func advance(to done: UInt64) { state.withLock { $0.done = done } }

  /// Get the number of bytes done from `source` whenever the bar is drawn.
  func follow(_ source: @escaping @Sendable () -> UInt64) {
    state.withLock { $0.source = source }
  }

  /// Remove the bar.
  func end() {
    state.withLock { state in
      if state.isDrawn && !state.hasEnded { StandardError.write("\r\u{1b}[K") }
      state.hasEnded = true
    }
  }

  /// Returns false once the bar has ended.
  private func draw() -> Bool {
    let source = state.withLock { $0.source }
    let followed = source?()
    return state.withLock { state in
      if state.hasEnded { return false }
      if let followed { state.done = followed }
      let line = Self.line(
        state.stage, state.done, state.total, width: Terminal.width(STDERR_FILENO))
      StandardError.write("\r\(line)\u{1b}[K")
      state.isDrawn = true
      return true
    }
  }

  /// The bar as text that leaves the last column free; parts that do not fit are left out.
  static func line(_ stage: String, _ done: UInt64, _ total: UInt64?, width: Int) -> String {
    guard let total, total > 0 else {
      let text = done == 0 ? "\(stage)…" : "\(stage) \(done.asBytes)"
      return String(text.prefix(max(0, width - 1)))
    }
    let part = min(1, Double(done) / Double(total))
    let percent = "\(Int(part * 100)) %"
    let amounts = " of \(total.asBytes)"
    var text = "\(stage) \(percent)\(amounts)"
    let room = width - text.count - 4
    if room >= 10 {
      let bar = min(room, 40)
      let full = Int(part * Double(bar))
      let cells = String(repeating: "#", count: full) + String(repeating: "-", count: bar - full)
      text = "\(stage) [\(cells)] \(percent)\(amounts)"
    } else if text.count >= width {
      text = percent
    }
    return String(text.prefix(max(0, width - 1)))
  }
}
