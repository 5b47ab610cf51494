import CBOR
import Foundation
import Testing

/// A Python that has cbor2; `Scripts/test` makes one.
private let python = ProcessInfo.processInfo.environment["LOCKSTEP_PYTHON"]

/// An independent implementation reads our items, and we read its items.
@Suite(.enabled(if: python != nil, "LOCKSTEP_PYTHON names no Python with cbor2"))
struct CrossCheckTests {
  @Test func `cbor2 reads our items and writes the same bytes in canonical order`() throws {
    var random = SeededGenerator(seed: 2)
    let items =
      appendixA.filter(\.isComparable).map { try! CBORItem(bytes($0.hex)) }
      + (0..<5_000).map { _ in random.item() }
    let lines = try crossCheck(["canonical"], input: items.map { hex($0.encoded) })
    try #require(lines.count == items.count)
    for (item, line) in zip(items, lines) {
      let words = line.split(separator: " ", maxSplits: 1)
      #expect(hex(item.canonical.encoded) == words[0], "\(item) is \(words[1]) to cbor2")
    }
  }

  @Test(arguments: [1, 2, 3])
  func `items from another encoder survive a round trip through ours`(seed: Int) throws {
    let originals = try crossCheck(["generate", "\(seed)", "2000"], input: [])
    try #require(originals.count == 2000)
    let pairs = try originals.map { original in
      let item = try CBORItem(bytes(original))
      #expect(skipError(bytes(original)) == nil)
      return "\(original) \(hex(item.encoded))"
    }
    let verdicts = try crossCheck(["compare"], input: pairs)
    try #require(verdicts.count == pairs.count)
    for (pair, verdict) in zip(pairs, verdicts) { #expect(verdict == "same", "\(pair)") }
  }
}

/// Runs cross_check.py with these lines of input and returns its lines of output.
private func crossCheck(_ arguments: [String], input: [String]) throws -> [String] {
  let manager = FileManager.default
  // A file, not a pipe: with two pipes each process could wait for the other to read.
  let file = manager.temporaryDirectory.appendingPathComponent("cross-check-\(UUID().uuidString)")
  defer { try? manager.removeItem(at: file) }
  try Data(input.map { $0 + "\n" }.joined().utf8).write(to: file)

  let process = Process()
  process.executableURL = URL(fileURLWithPath: try #require(python))
  let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("cross_check.py").path
  process.arguments = ["-B", script] + arguments
  process.standardInput = try FileHandle(forReadingFrom: file)
  let output = Pipe()
  process.standardOutput = output
  try process.run()
  let data = try output.fileHandleForReading.readToEnd() ?? Data()
  process.waitUntilExit()
  try #require(process.terminationStatus == 0, "cross_check.py \(arguments) failed.")
  return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
}

extension Vector {
  /// Whether cbor2 preserves the tag: it converts dates, bignums and URIs to values of its own.
  fileprivate var isComparable: Bool {
    switch try? CBORItem(bytes(hex)) {
    case .tagged: false
    default: true
    }
  }
}

extension CBORItem {
  /// The item with its maps sorted as cbor2 does: by length of the encoded key, then by its bytes.
  fileprivate var canonical: CBORItem {
    switch self {
    case .array(let items): return .array(items.map(\.canonical))
    case .tagged(let number, let content): return .tagged(number, content.canonical)
    case .map(let pairs):
      let sorted = pairs.map { ($0.key.encoded, $0) }.sorted { left, right in
        left.0.count != right.0.count
          ? left.0.count < right.0.count : left.0.lexicographicallyPrecedes(right.0)
      }
      return .map(sorted.map { Pair($0.1.key.canonical, $0.1.value.canonical) })
    case .unsigned, .negative, .bytes, .text, .bool, .null, .undefined, .simple, .double:
      return self
    }
  }
}
