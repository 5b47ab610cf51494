import EventLoop
import Files
import Glibc
import SystemPackage
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
    if options.open, hasDisplay, output.isPretty { openInBrowser(address) }
  }

  /// Open the address in a browser. If that fails, a person does it.
  ///
  /// By way of a file that others cannot read, as Jupyter does: the arguments of a process are seen by all
  /// users of the machine, and the address has a secret.
  private static func openInBrowser(_ address: String) {
    let folder = getenv("XDG_RUNTIME_DIR").map { String(cString: $0) } ?? "/tmp"
    // A folder of mode 0700.
    var template = Array("\(folder)/lockstep-inspect-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else { return }
    let file = String(cString: made) + "/open.html"
    let page = "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=\(address)\">\n"
    do throws(Errno) {
      let descriptor = try FileDescriptor.opening(
        file, .writeOnly, [.create, .exclusiveCreate], permissions: .ownerReadWrite)
      defer { descriptor.closeQuietly() }
      try descriptor.write(Array(page.utf8))
    } catch {
      return
    }
    let arguments = ["xdg-open", file]
    var words = arguments.map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var pid = pid_t()
    posix_spawnp(&pid, "xdg-open", nil, nil, &words, environ)
  }
}
