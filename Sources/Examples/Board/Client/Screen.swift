import Dispatch
import Glibc

/// Where the board is drawn: a terminal, in which each picture replaces the one before, or a file or
/// pipe, to which each is written.
struct Screen {
  private let isTerminal = isatty(STDOUT_FILENO) == 1
  /// The settings of the terminal before; nil if keys do not come from one.
  private let before: termios?

  /// Read keys one by one, unseen, and draw on a screen of one's own.
  init() {
    var settings = termios()
    guard isatty(STDIN_FILENO) == 1, tcgetattr(STDIN_FILENO, &settings) == 0 else {
      before = nil
      return
    }
    before = settings
    cfmakeraw(&settings)
    tcsetattr(STDIN_FILENO, TCSANOW, &settings)
    if isTerminal { print("\u{1B}[?1049h", terminator: "") }
  }

  /// Give the terminal back.
  func close() {
    guard var before else { return }
    if isTerminal { print("\u{1B}[?1049l", terminator: "") }
    fflush(nil)
    tcsetattr(STDIN_FILENO, TCSANOW, &before)
  }

  func draw(_ lines: [String]) {
    if isTerminal {
      // To the upper left corner, and nothing below the picture.
      print("\u{1B}[H" + lines.map { $0 + "\u{1B}[K\r\n" }.joined() + "\u{1B}[J", terminator: "")
    } else {
      for line in lines { print(line) }
      print()
    }
    fflush(nil)
  }

  /// Call a body with each key that is pressed, on a thread of its own. A signal that would end the
  /// process is the key that ends it, so that the terminal is given back.
  static func readKeys(_ body: @escaping @Sendable (Key) -> Void) {
    for number in [SIGTERM, SIGHUP] {
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number)
      source.setEventHandler {
        body(.quit)
        // Keeps the source, which ends with the process.
        _ = source
      }
      source.resume()
    }
    DispatchQueue(label: "keys").async {
      var reader = KeyReader()
      var byte: UInt8 = 0
      while read(STDIN_FILENO, &byte, 1) == 1 {
        if let key = reader.read(byte) { body(key) }
      }
    }
  }
}
