public import Glibc

/// A notification to the service manager: one or a few lines of a datagram (sd_notify(3)).
public enum Notification: Equatable, Sendable {
  /// The service is ready, or has finished reloading: units that waited for it may start.
  case ready
  /// What the service is doing, for people; `systemctl status` shows it. Control characters,
  /// including newlines, become spaces, and text beyond `statusLimit` bytes is cut.
  case status(String)
  /// The service is reloading its configuration; `ready` must follow. With the time of
  /// `CLOCK_MONOTONIC`, which `Type=notify-reload` compares with the moment of its signal.
  case reloading(monotonicMicroseconds: UInt64)
  /// The service has begun to stop.
  case stopping
  /// The heartbeat: the service is alive. Due every `Watchdog.interval`.
  case watchdog
  /// Starting, stopping or running may take this much longer from now.
  case extendTimeout(microseconds: UInt64)
  /// Another process becomes the service's main one.
  case mainPID(pid_t)
  /// Store the datagram's descriptors under this name until the service comes back.
  ///
  /// With `polls`, the manager drops a descriptor at its first hang-up or error: if a client sends,
  /// closes and is not read before the restart, what it sent is lost. Without, the manager keeps
  /// each one until `fdStoreRemove`, and the peer sees no end before that.
  case fdStore(name: String, polls: Bool)
  /// Drop every descriptor of this name.
  case fdStoreRemove(name: String)

  /// The most bytes of a status. The manager accepts 4095 in a whole datagram.
  public static let statusLimit = 2048

  /// The lines, without their newlines.
  var assignments: [String] {
    switch self {
    case .ready: ["READY=1"]
    case .status(let text): ["STATUS=" + Self.line(text)]
    case .reloading(let time): ["RELOADING=1", "MONOTONIC_USEC=\(time)"]
    case .stopping: ["STOPPING=1"]
    case .watchdog: ["WATCHDOG=1"]
    case .extendTimeout(let time): ["EXTEND_TIMEOUT_USEC=\(time)"]
    case .mainPID(let pid): ["MAINPID=\(pid)"]
    case .fdStore(let name, polls: true): ["FDSTORE=1", "FDNAME=\(name)"]
    case .fdStore(let name, polls: false): ["FDSTORE=1", "FDNAME=\(name)", "FDPOLL=0"]
    case .fdStoreRemove(let name): ["FDSTOREREMOVE=1", "FDNAME=\(name)"]
    }
  }

  /// The name of descriptors that the datagram is about.
  var descriptorName: String? {
    switch self {
    case .fdStore(let name, polls: _), .fdStoreRemove(let name): name
    case .ready, .status, .reloading, .stopping, .watchdog, .extendTimeout, .mainPID: nil
    }
  }

  /// The text as one line of limited length, cut between scalars.
  private static func line(_ text: String) -> String {
    var result = ""
    var size = 0
    for scalar in text.unicodeScalars {
      let isControl = scalar.value < 0x20 || (0x7f..<0xa0).contains(scalar.value)
      let plain: Unicode.Scalar = isControl ? " " : scalar
      size += UTF8.width(plain)
      if size > statusLimit { break }
      result.unicodeScalars.append(plain)
    }
    return result
  }
}
