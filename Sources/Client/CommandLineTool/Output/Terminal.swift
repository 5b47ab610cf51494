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

  /// The size in columns and rows as it is now; 80 by 24 if the terminal does not know it. Unlike
  /// `width` it follows the terminal and not `COLUMNS`.
  static func size(_ descriptor: Int32) -> TopScreen.Size {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
      return TopScreen.Size(columns: 80, rows: 24)
    }
    return TopScreen.Size(columns: Int(size.ws_col), rows: Int(size.ws_row))
  }

  /// Whether a terminal can be drawn on, and not only written to line by line.
  static func isScreen(_ descriptor: Int32) -> Bool {
    guard isTerminal(descriptor), let type = variable("TERM") else { return false }
    return type != "dumb"
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
