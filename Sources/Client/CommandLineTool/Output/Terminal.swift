import Glibc

/// What the standard streams are connected to.
enum Terminal {
  static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// The columns that are written to: `COLUMNS` if that is set, else those of the terminal; 80 when
  /// neither says.
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

  /// An environment variable that is set to something.
  private static func variable(_ name: String) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    return String(cString: value)
  }
}
