import Foundation
import Testing

/// A file of `Protocols/vectors` that our own code writes and an independent implementation checks.
enum VectorText {
  struct Missing: Error {}

  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Protocols/vectors")

  /// Requires that a file has this text; with `LOCKSTEP_WRITE_VECTORS`, writes it instead.
  static func compare(
    _ text: String, with name: String, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let file = folder.appendingPathComponent(name)
    if ProcessInfo.processInfo.environment["LOCKSTEP_WRITE_VECTORS"] != nil {
      try text.write(to: file, atomically: true, encoding: .utf8)
    }
    let kept = try String(contentsOf: file, encoding: .utf8)
    let difference = zip(kept.split(separator: "\n"), text.split(separator: "\n"))
      .enumerated().first { $0.element.0 != $0.element.1 }
    #expect(
      kept == text, "\(name) differs: \(String(describing: difference))",
      sourceLocation: sourceLocation)
  }

  static func hex(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in bytes { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
    return String(decoding: text, as: UTF8.self)
  }

  /// The bytes of a hex string.
  static func bytes(_ hex: String) throws -> [UInt8] {
    let digits = Array(hex.utf8)
    guard digits.count.isMultiple(of: 2) else { throw Missing() }
    return try stride(from: 0, to: digits.count, by: 2).map { index in
      let pair = String(decoding: digits[index..<(index + 2)], as: UTF8.self)
      guard let byte = UInt8(pair, radix: 16) else { throw Missing() }
      return byte
    }
  }
}
