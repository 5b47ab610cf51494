import EventLoop
import Glibc

/// Ends a command that takes longer than `--timeout`.
enum Deadline {
  /// Start the timer. A command that has to clean up gets a moment to do so. `acts`: the command
  /// may have sent an action, whose outcome is then unknown.
  static func start(_ limit: Seconds?, acts: Bool) {
    guard let limit else { return }
    Task.detached {
      try? await LoopClock().sleep(for: limit.duration)
      if Interruption.isWatched {
        Interruption.note(.timeout)
        try? await LoopClock().sleep(for: .seconds(1))
      }
      // What is said there would be gone with it.
      FullScreen.leave()
      let time = limit.duration.formatted
      StandardError.say(
        Failure(
          .timeout,
          acts
            ? "no answer within \(time) (--timeout): whether it was done is unknown. Look with "
              + "'lockstep get' before you send it again."
            : "not done within \(time) (--timeout)."))
      exit(ExitStatus.timeout.rawValue)
    }
  }
}
