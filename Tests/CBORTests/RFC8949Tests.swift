import CBOR
import Testing

struct RFC8949Tests {
  @Test(arguments: appendixA)
  func `every example of appendix A decodes to its meaning`(vector: Vector) throws {
    let item = try CBORItem(bytes(vector.hex))
    #expect(item.description == vector.meaning)
  }

  @Test(arguments: appendixA)
  func `preferred examples encode to their own bytes and others to equal items`(
    vector: Vector
  ) throws {
    let item = try CBORItem(bytes(vector.hex))
    #expect((hex(item.encoded) == vector.hex) == vector.isPreferred)
    #expect(try CBORItem(item.encoded) == item)
  }

  @Test(arguments: appendixA)
  func `skip and rawItem take exactly the bytes of an example`(vector: Vector) throws {
    let input = bytes(vector.hex)
    let followed = input + [0x00]
    try CBORDecoder.read(followed) { decoder throws(CBORError) in
      try decoder.skip()
      #expect(decoder.offset == input.count)
      let next = try decoder.unsigned()
      #expect(next == 0)
    }
    let raw = try CBORDecoder.read(input) { decoder throws(CBORError) in
      [UInt8](try decoder.rawItem())
    }
    #expect(raw == input)
  }

  @Test(arguments: appendixA)
  func `every strict prefix of an example is truncated`(vector: Vector) {
    let whole = bytes(vector.hex)
    for length in 0..<whole.count {
      let prefix = Array(whole.prefix(length))
      let error = #expect(throws: CBORError.self) { try CBORItem(prefix) }
      switch error?.kind {
      case .truncated, .lengthBeyondInput: break
      default: Issue.record("\(hex(prefix)): \(String(describing: error))")
      }
      #expect((error?.offset ?? .max) <= length)
      #expect(skipError(prefix) == error)
    }
  }

  @Test(arguments: appendixF1)
  func `every malformed example of appendix F1 is refused at the offset of its fault`(
    example: NotWellFormed
  ) {
    let input = bytes(example.hex)
    #expect(throws: example.error) { try CBORItem(input) }
    #expect(skipError(input) == example.error)
  }
}

/// The error of `skip`, which must equal the error of decoding a `CBORItem`.
func skipError(_ input: [UInt8]) -> CBORError? {
  do throws(CBORError) {
    try CBORDecoder.read(input) { decoder throws(CBORError) in try decoder.skip() }
    return nil
  } catch {
    return error
  }
}
