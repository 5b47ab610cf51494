import Glibc

/// What the standard streams are connected to.
enum Terminal {
  static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// The width in columns: `COLUMNS` if that is set, else the terminal's; 80 if neither is known.
  static func width(_ descriptor: Int32) -> Int {
    if let columns = variable("COLUMNS").flatMap({ Int($0) }), columns > 0 { return columns }
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
  }

  /// Whether colours are wanted (https://no-color.org).
  static func wantsColor(_ descriptor: Int32) -> Bool {
    guard isTerminal(descriptor), variable("NO_COLOR") == nil else { return false }
    guard let type = variable("TERM") else { return false }
    return type != "dumb"
  }

  /// An environment variable; nil if it is unset or empty.
  private static func variable(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }
}
