import EventLoop
import Glibc
import Values

/// The reason that the inspector does not serve.
package struct InspectorFailure: Error {
  let message: String

  package init(_ message: String) { self.message = message }
}

/// Tells where the page of the inspector is.
package enum InspectorAddress {
  /// Write the address, and open it in a browser, if that is wanted and there is a display.
  package static func tell(_ address: String, _ options: InspectorOptions) throws {
    let output = Output(options.options)
    if options.options.json {
      try output.line(["address": .text(address)])
    } else {
      try output.lines(address)
    }
    let hasDisplay = getenv("DISPLAY") != nil || getenv("WAYLAND_DISPLAY") != nil
    guard options.open, hasDisplay, output.isPretty else { return }
    let arguments = ["xdg-open", address]
    var words = arguments.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var pid = pid_t()
    // Without it, a person opens the address.
    posix_spawnp(&pid, "xdg-open", nil, nil, &words, environ)
  }
}
