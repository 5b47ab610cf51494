/// The names that a manager attaches to descriptors: `FDNAME=`, `$LISTEN_FDNAMES`.
enum DescriptorName {
  /// The most bytes of a name.
  static let limit = 255

  /// Whether systemd accepts the name: ASCII, no control character, no colon. It may be empty.
  static func isValid(_ name: some StringProtocol) -> Bool {
    name.utf8.count <= limit
      && name.utf8.allSatisfy { (0x20..<0x7f).contains($0) && $0 != UInt8(ascii: ":") }
  }
}
