import Glibc

/// The end of a command that takes longer than `--timeout`.
enum Deadline {
  /// Begin to count. A command that has to clean up behind itself gets a moment to do so.
  static func start(_ limit: Seconds?) {
    guard let limit else { return }
    Task.detached {
      try? await Task.sleep(for: limit.duration)
      if Interruption.isWatched {
        Interruption.note(.timeout)
        try? await Task.sleep(for: .seconds(1))
      }
      StandardError.say("not done after \(limit.duration.formatted) (--timeout).")
      exit(ExitStatus.timeout.rawValue)
    }
  }
}
