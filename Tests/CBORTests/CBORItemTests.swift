import CBOR
import Testing

struct CBORItemTests {
  @Test func `a nested item survives a round trip`() throws {
    let item = CBORItem.array([.unsigned(1), .map([.init(.text("a"), .negative(0))])])
    #expect(hex(item.encoded) == "8201a1616120")
    #expect(try CBORItem(item.encoded) == item)
  }

  @Test func `pairs keep their order and their duplicates`() throws {
    let item = try CBORItem(bytes("a3" + "0200" + "0101" + "0202"))
    #expect(item.description == "{2: 0, 1: 1, 2: 2}")
    #expect(hex(item.encoded) == "a3020001010202")
  }

  @Test func `two items are equal when their encodings are`() {
    #expect(CBORItem.double(.nan) == .double(.signalingNaN))
    #expect(CBORItem.double(0.0) != .double(-0.0))
    #expect(CBORItem.double(1) != .unsigned(1))
    #expect(CBORItem.text("\u{e9}") != .text("e\u{301}"))
    #expect(CBORItem.text("a") != .bytes([0x61]))
    #expect(CBORItem.null != .undefined)
    #expect(CBORItem.tagged(1, .null) != .tagged(2, .null))
    #expect(CBORItem.tagged(1, .double(.nan)) == .tagged(1, .double(.nan)))
    #expect(CBORItem.array([.double(.nan)]) == .array([.double(.nan)]))
  }

  @Test func `random items are equal exactly when their encodings are`() {
    var random = SeededGenerator(seed: 8949)
    let items = (0..<300).map { _ in random.item(depth: 1) }
    let encodings = items.map(\.encoded)
    for (left, leftBytes) in zip(items, encodings) {
      for (right, rightBytes) in zip(items, encodings)
      where (left == right) != (leftBytes == rightBytes) {
        Issue.record("\(left) and \(right)")
      }
    }
  }

  @Test func `text in diagnostic notation escapes what JSON escapes`() {
    #expect(
      CBORItem.text("\"\\\n\r\t\u{0}\u{1f}\u{7f}é").description
        == #""\"\\\n\r\t\u0000\u001f\u007fé""#)
    #expect(CBORItem.double(.leastNonzeroMagnitude).description == "5.0e-324")
    #expect(CBORItem.double(-1e22).description == "-1.0e+22")
  }

  @Test func `random items survive a round trip`() throws {
    var random = SeededGenerator(seed: 1)
    for _ in 0..<5_000 {
      let item = random.item()
      #expect(try CBORItem(item.encoded) == item)
      #expect(skipError(item.encoded) == nil)
    }
  }

  /// Four seeds share 200,000 buffers, so that they run in parallel.
  @Test(arguments: UInt64(0)..<4)
  func `random bytes are an item or an error, and skip agrees`(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var items = 0
    for _ in 0..<50_000 {
      let input = random.below(2) == 0 ? random.bytes(upTo: 24) : random.damagedItem()
      do throws(CBORError) {
        let item = try CBORItem(input)
        items += 1
        let output = item.encoded
        let again = try CBORItem(output)
        guard again == item, again.encoded == output, skipError(input) == nil else {
          Issue.record("\(hex(input)) is \(item), then \(again)")
          return
        }
      } catch {
        guard (0...input.count).contains(error.offset), skipError(input) == error else {
          Issue.record(
            "\(hex(input)): \(error), but skip says \(String(describing: skipError(input)))")
          return
        }
      }
    }
    #expect(items > 5_000, "Too few buffers were items to prove much.")
  }
}

extension SeededGenerator {
  /// The encoding of an item with a few bytes changed, inserted, removed or cut off.
  fileprivate mutating func damagedItem() -> [UInt8] {
    var bytes = item(depth: 2).encoded
    for _ in 0..<below(3) {
      let index = below(bytes.count)
      switch below(4) {
      case 0: bytes[index] = UInt8(below(256))
      case 1: bytes.insert([0x9f, 0xbf, 0x5f, 0x7f, 0xff, 0xf9][below(6)], at: index)
      case 2: bytes.append(0xff)
      default: bytes.removeSubrange((index + 1)...)
      }
    }
    return bytes
  }
}
