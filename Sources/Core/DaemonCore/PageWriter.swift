import CBOR
import Values

/// One page of a report: rows that are written straight as CBOR, until the page is full.
///
/// No text is longer than `textBytes`, so the size of a row is limited, and a page exceeds its
/// limit by at most one row.
struct PageWriter {
  private var encoder = CBOREncoder()
  /// The rows of the page.
  private(set) var rows = 0
  /// Those of earlier pages that are sent with it.
  private var earlierRows = 0
  /// The start of the current row, and the number of its members.
  private var row = 0
  private var members: UInt8 = 0
  /// The start of the page, after earlier pages that are sent with it.
  private var pageStart = 0
  private let textBytes: Int
  private let longestPage: Int
  private var pageBytes: Int

  init(_ limits: Limits) {
    textBytes = limits.textBytes
    // A frame has some more bytes.
    longestPage = min(limits.reportPageBytes, limits.frameBytes / 2)
    pageBytes = longestPage
  }

  /// Whether the page has reached its size.
  var isFull: Bool { encoder.bytes.count - pageStart >= pageBytes }

  /// About the most rows that a page has room for.
  var mostRows: Int { min(128, max(16, pageBytes / 256)) }

  /// Begin another page, which is sent together with those before; with fewer bytes than the limits
  /// allow if `most` is less.
  mutating func beginPage(most: Int) {
    pageStart = encoder.bytes.count
    earlierRows += rows
    rows = 0
    pageBytes = min(longestPage, most)
  }

  var byteCount: Int { encoder.bytes.count }

  /// Begin an object; `add` adds its members, at most 23.
  mutating func beginRow() {
    row = encoder.bytes.count
    members = 0
    encoder.map(0)
  }

  mutating func endRow() {
    encoder.bytes[row] |= members
    rows += 1
  }

  private mutating func name(_ name: String) {
    precondition(members < 23, "an object of a page has at most 23 members")
    members += 1
    encoder.encode(name)
  }

  mutating func add(_ name: String, _ value: UInt64) {
    self.name(name)
    encoder.encode(value)
  }

  mutating func add(_ name: String, _ value: Int) { add(name, UInt64(clamping: value)) }

  mutating func add(_ name: String, _ value: Bool) {
    self.name(name)
    encoder.encode(value)
  }

  mutating func add(_ name: String, _ text: String) {
    self.name(name)
    encoder.encode(text.prefix(bytes: textBytes))
  }

  mutating func add(_ name: String, _ texts: [String]) {
    self.name(name)
    encoder.array(texts.count)
    for text in texts { encoder.encode(text.prefix(bytes: textBytes)) }
  }

  /// Add a value that nests no deeper than a report may.
  mutating func add(_ name: String, _ value: Value) {
    self.name(name)
    value.encode(into: &encoder)
  }

  /// The rows as an array.
  var array: [UInt8] {
    var whole = CBOREncoder()
    whole.array(earlierRows + rows)
    whole.raw(encoder.bytes)
    return whole.bytes
  }
}
