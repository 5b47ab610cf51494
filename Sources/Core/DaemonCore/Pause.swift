import Lockstep
import Wire

// While the daemon is paused, the contents of the state stay as they are, so that somebody can look
// around: actions of clients are rejected, and what effects send waits until they may go on, with what
// else they tell, in order. Mirrors, reports and jumps go on, and so do presence and all that is said of
// sessions: those are facts.

/// Whether a server is paused, and what waits for its end.
struct Pause<Action: Sendable>: Sendable {
  /// What an effect has told.
  enum News: Sendable {
    case sent(EffectID, Action)
    case cancelled(ScopedEffectKey)
    case ended(EffectID, error: String?)
  }

  /// Since when it is paused; nil if it is not.
  private(set) var since: Instant?
  /// When the pause ends by itself, if it does.
  private var end: Instant?
  private var news: [News] = []
  private var firstNews = 0

  /// The most news that wait. A daemon that somebody has forgotten goes on before they take its memory.
  static var mostNews: Int { 10_000 }

  var isOn: Bool { @inline(__always) get { since != nil } }
  /// Whether news wait.
  var holdsNews: Bool { firstNews < news.count }
  /// Whether news of effects must wait: behind those that do already, even when the pause is over.
  var holdsEffects: Bool { @inline(__always) get { isOn || holdsNews } }
  /// Whether so many news wait that the pause must end.
  var isFull: Bool { isOn && news.count - firstNews >= Self.mostNews }

  mutating func begin(at now: Instant, for duration: Duration?) {
    since = since ?? now
    end = duration.map { now + $0 }
  }

  /// End the pause. Returns false if there was none.
  mutating func finish() -> Bool {
    defer { (since, end) = (nil, nil) }
    return isOn
  }

  func isOver(at now: Instant) -> Bool { end.map { !(now < $0) } ?? false }

  mutating func hold(_ item: News) { news.append(item) }

  /// Take the oldest news, if any may be taken.
  mutating func next() -> News? {
    guard !isOn, holdsNews else { return nil }
    defer {
      firstNews += 1
      if firstNews == news.count {
        (news, firstNews) = ([], 0)
      } else if firstNews >= 4096, firstNews * 2 > news.count {
        news.removeSubrange(..<firstNews)
        firstNews = 0
      }
    }
    return news[firstNews]
  }
}

extension Rejection {
  /// Of any action while the daemon is paused.
  static var paused: Rejection {
    Rejection(.paused, "the daemon is paused, for somebody to look around: try again later")
  }
}

extension Server {
  /// The answer to the query `pause` or `resume`.
  mutating func setPause(
    _ name: ReportName, _ arguments: [String], _ connection: borrowing ServerSession,
    _ commands: inout [Command]
  ) -> Value {
    if name == .resume {
      let wasOn = resume("a client asked for it", by: connection.logFields, &commands)
      return ["paused": false, "was": .bool(wasOn)]
    }
    var seconds: Int64?
    if let argument = arguments.first {
      let most = ReportName.longestPause
      guard let number = Int(argument), (1...most).contains(number) else {
        return ReportError(.malformed, "pause: for how many seconds? From 1 to \(most).").report
      }
      seconds = Int64(number)
    }
    let wasOn = pause.isOn
    pause.begin(at: clock.now, for: seconds.map { .seconds($0) })
    if !wasOn {
      commands.append(
        .log(LogLine(.notice, "paused: actions are rejected", connection.logFields)))
    }
    return ["paused": true, "was": .bool(wasOn)]
  }

  /// End the pause. What effects have told is heard from the end of this turn on.
  @discardableResult
  mutating func resume(
    _ why: String, by client: [LogLine.Field] = [], _ commands: inout [Command]
  ) -> Bool {
    guard pause.finish() else { return false }
    commands.append(.log(LogLine(.notice, "the pause is over: \(why)", client)))
    return true
  }

  /// Hear what an effect tells, or have it wait.
  @inline(__always)
  mutating func hear(_ news: Pause<R.Action>.News, _ commands: inout [Command]) {
    if pause.holdsEffects && !faults.hearsWhilePaused { return hold(news, &commands) }
    take(news)
  }

  @inline(never)
  private mutating func hold(_ news: Pause<R.Action>.News, _ commands: inout [Command]) {
    if faults.losesHeldNews { return }
    pause.hold(news)
    if pause.isFull {
      resume("\(Pause<R.Action>.mostNews) actions of effects wait", &commands)
    }
  }

  /// Whether the contents of the state stay as they are.
  package var isPaused: Bool { pause.isOn }

  /// Whether what an effect tells now, or has told, waits: it must not go on before it is heard.
  public var holdsEffects: Bool { pause.holdsEffects }

  /// Hear what waited for the end of the pause, as much as a turn may do.
  mutating func hearHeld() {
    while turn.waitingBudget > 0, let news = pause.next() {
      turn.waitingBudget -= 1
      if case .cancelled(let name) = news, name.isRecorded {
        // In a replay, no effect ran under the name yet when the cancellation was told.
        take(.cancelled(core.runningName(of: name.texts) ?? name))
      } else {
        take(news)
      }
    }
  }

  /// End the pause because the process ends: what effects have told is heard at once, and what follows
  /// from it done, as far as it comes to an end.
  mutating func endPause(_ why: String, _ commands: inout [Command]) {
    guard pause.holdsEffects else { return }
    resume(why, &commands)
    turn.waitingBudget = max(turn.waitingBudget, 4 * Pause<R.Action>.mostNews)
    hearHeld()
    if core.hasWaiting { runWaiting() }
  }

  @inline(never)
  private mutating func take(_ news: Pause<R.Action>.News) {
    switch news {
    case .sent(let id, let action): effectSent(action, id)
    case .cancelled(let name): effectCancelled(name)
    case .ended(let id, let error): effectEnded(id, unhandled: error)
    }
  }
}
