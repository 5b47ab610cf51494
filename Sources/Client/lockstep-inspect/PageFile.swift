import CInspectorPage

#if DEBUG
  import Foundation
#endif

/// A file of the page, which is in the program.
struct PageFile {
  let type: String
  let bytes: [UInt8]

  /// Nil if the page has no such file.
  init?(named name: String) {
    guard let ending = name.split(separator: ".").last, let type = Self.types[String(ending)],
      let bytes = Self.bytes(of: name)
    else { return nil }
    self.type = type
    self.bytes = bytes
  }

  private static let types = [
    "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml",
  ]

  private static func bytes(of name: String) -> [UInt8]? {
    #if DEBUG
      // While the page is worked on, its files are read from a folder.
      if let folder = ProcessInfo.processInfo.environment["LOCKSTEP_INSPECT_PAGE"],
        !name.contains("/")
      {
        return FileManager.default.contents(atPath: "\(folder)/\(name)").map(Array.init)
      }
    #endif
    guard let file = lockstep_page_find(name) else { return nil }
    // A constant of the program, of this size.
    return Array(UnsafeBufferPointer(start: file.pointee.bytes, count: file.pointee.count))
  }
}
