import EventLoop
import Glibc
import LockstepClient

/// The screen of `lockstep top`: looks come at their time, keys at theirs, and each leads to a
/// picture. One task does all of it, so no two draw at once.
struct TopSession {
  private enum Event: Sendable {
    case terminal(TerminalEvent)
    case look(TopLook)
    /// There are no more looks; the error, if they end by one.
    case end((any Error)?)
    case tick
  }

  private let looks: TopLooks
  private let hasColor: Bool
  private var model: TopModel
  private var view: TopView
  /// What is shown while the screen is frozen.
  private var frozen: TopModel?
  private var latest = ContinuousClock.now
  private var isOver = false

  init(_ looks: TopLooks, _ model: TopModel, _ view: TopView, hasColor: Bool) {
    self.looks = looks
    self.model = model
    self.view = view
    self.hasColor = hasColor
  }

  /// Show the screen until a key or the count ends it. Throws when the connection has ended.
  mutating func run() async throws {
    let (events, continuation) = AsyncStream.makeStream(of: Event.self)
    try TerminalEvents.start { continuation.yield(.terminal($0)) }
    // Before an error is written: it would be gone with the screen.
    defer { FullScreen.leave() }
    try FullScreen.enter()
    try draw()
    let tasks = [look(continuation), watchEnd(continuation), tick(continuation)]
    defer { for task in tasks { task.cancel() } }
    for await event in events {
      switch event {
      case .terminal(let event): try await take(event)
      case .look(let look):
        model.add(look)
        latest = ContinuousClock.now
      case .end(let error?): throw error
      case .end(nil): return
      case .tick: if silence == nil { continue }
      }
      if isOver { return }
      try draw()
    }
  }

  // MARK: Events

  private func look(_ events: AsyncStream<Event>.Continuation) -> Task<Void, Never> {
    let looks = looks
    return Task {
      do {
        try await looks.run { events.yield(.look($0)) }
        events.yield(.end(nil))
      } catch is CancellationError {
      } catch {
        events.yield(.end(error))
      }
    }
  }

  /// Notice the end of the connection also between two looks.
  private func watchEnd(_ events: AsyncStream<Event>.Continuation) -> Task<Void, Never> {
    let connection = looks.client.connection
    return Task {
      for await state in connection.states {
        guard case .closed(let goodbye) = state else { continue }
        let failure: Failure = Failure(goodbye)
        events.yield(.end(failure))
      }
    }
  }

  private func tick(_ events: AsyncStream<Event>.Continuation) -> Task<Void, Never> {
    Task {
      while (try? await LoopClock().sleep(for: .seconds(1))) != nil { events.yield(.tick) }
    }
  }

  private mutating func take(_ event: TerminalEvent) async throws {
    switch event {
    case .keys(let keys): for key in keys { press(key) }
    case .resized: break
    case .stop:
      FullScreen.suspend()
      // Stops the process before it returns, and returns when it goes on.
      raise(SIGSTOP)
      try FullScreen.enter()
    case .continued: try FullScreen.enter()
    case .closed: isOver = true
    case .end(let number):
      FullScreen.leave()
      await looks.client.connection.finish()
      Interruption.end(by: number)
    }
  }

  private mutating func press(_ key: TopKey) {
    let extent = screen.extent
    switch view.press(key, rows: extent.rows, room: extent.room) {
    case .none: break
    case .quit: isOver = true
    case .freeze: frozen = view.isFrozen ? model : nil
    }
  }

  // MARK: The picture

  private var screen: TopScreen {
    TopScreen(
      model: frozen ?? model, view: view, size: Terminal.size(STDOUT_FILENO), silence: silence)
  }

  /// For how long there has been no answer, if that is long.
  private var silence: Duration? {
    let time = latest.duration(to: ContinuousClock.now)
    return time < looks.interval + .seconds(2) ? nil : .seconds(time.components.seconds)
  }

  private func draw() throws(Failure) {
    let screen = screen
    try FullScreen.draw(screen.lines.map { $0.drawn(width: screen.size.columns, hasColor) })
  }
}

extension TopScreen.Line {
  /// The line as a terminal is told to show it, from the first column on.
  fileprivate func drawn(width: Int, _ hasColor: Bool) -> String {
    let code =
      switch style {
      case .plain: ""
      case .title: "7"
      case .heading: "2"
      case .chosenHeading: "1"
      case .faint: "2"
      case .warning: "33"
      }
    if hasColor, style == .title { return "\u{1b}[7m\(text)\u{1b}[0m" }
    var shown = text[...]
    while shown.last == " " { shown.removeLast() }
    // Clearing behind a full line would clear its last column.
    let end = String(shown).columns < width ? "\u{1b}[K" : ""
    return hasColor && !code.isEmpty ? "\u{1b}[\(code)m\(shown)\u{1b}[0m\(end)" : shown + end
  }
}
