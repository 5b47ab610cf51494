import CBOR
import Schemas
import Testing
import Values

/// States without their types, compared with the same states with them.
@Suite struct UntypedStateTests {
  private func untyped(_ state: some Synchronizable) throws -> UntypedState {
    try TranslationTests.value(encoded { state.encode(into: &$0) }, as: UntypedState.self)
  }

  @Test(arguments: [1 as UInt64, 2, 3])
  func `a patch changes an untyped state as it changes the typed one`(seed: UInt64) throws {
    var random = SplitMix64(seed)
    var state = First.State()
    var follower = try untyped(state)
    let translation = try Translation(
      from: TranslationTests.first, to: .schema(TranslationTests.second), root: .state)
    for _ in 0..<400 {
      let old = state
      for _ in 0...(random.next() % 3) { TranslationTests.write(&state, &random) }
      let patch = encoded { _ = state.encodeDifference(from: old, into: &$0) }
      if patch.isEmpty { continue }
      try CBORDecoder.read(patch) { decoder throws(CBORError) in
        try follower.apply(patch: &decoder, seed: .unseeded)
      }
      let bytes = encoded { follower.encode(into: &$0) }
      #expect(try TranslationTests.value(bytes, as: First.State.self).isSame(as: state))
      // Also where the patch alone could not be translated.
      let whole = try TranslationTests.translated(
        encoded { state.encode(into: &$0) }, by: translation)
      let ours = try TranslationTests.value(
        TranslationTests.translated(bytes, by: translation), as: Second.State.self)
      #expect(ours.isSame(as: try TranslationTests.value(whole, as: Second.State.self)))
    }
  }

  @Test func `truncated patches are refused and changed ones never crash`() throws {
    var random = SplitMix64(4)
    var state = First.State()
    for _ in 0..<60 { TranslationTests.write(&state, &random) }
    let old = state
    for _ in 0..<10 { TranslationTests.write(&state, &random) }
    let patch = encoded { _ = state.encodeDifference(from: old, into: &$0) }
    let start = try untyped(old)
    for count in 0..<patch.count {
      #expect(throws: CBORError.self) { try apply(Array(patch[..<count]), to: start) }
    }
    for _ in 0..<3000 {
      var changed = patch
      changed[Int(random.next() % UInt64(changed.count))] = UInt8(random.next() & 0xff)
      guard let after = try? apply(changed, to: start) else { continue }
      // The result survives a round trip.
      #expect(try untyped(after).isSame(as: after))
    }
  }

  @discardableResult
  private func apply(_ patch: [UInt8], to state: UntypedState) throws -> UntypedState {
    var state = state
    try CBORDecoder.read(patch) { decoder throws(CBORError) in
      try state.apply(patch: &decoder, seed: .unseeded)
    }
    return state
  }

  @Test func `an edit of the wrong kind is refused`() throws {
    let map = try TranslationTests.value([0xa1, 0x01, 0x02], as: UntypedState.self)
    let array = try TranslationTests.value([0x82, 0x01, 0x02], as: UntypedState.self)
    // An element of a map, a splice and an edit beyond the end, three parts, and no triple.
    let bad: [(UntypedState, [UInt8])] = [
      (map, [0x82, 0x80, 0xa0]), (array, [0xa1, 0x00, 0x05]),
      (array, [0x82, 0x83, 0x03, 0x00, 0x80, 0xa0]), (array, [0x82, 0x83, 0x01, 0x02, 0x80, 0xa0]),
      (array, [0x82, 0x80, 0xa1, 0x02, 0x05]), (array, [0x83, 0x01, 0x02, 0x03]),
      (array, [0x82, 0x82, 0x01, 0x02, 0xa0]),
      (array, [0x82, 0x83, 0x1b] + Array(repeating: 0xff, count: 8) + [0x01, 0x80, 0xa0]),
    ]
    for (state, patch) in bad {
      #expect(throws: CBORError.self, "\(patch)") { try apply(patch, to: state) }
    }
    let spliced = try apply([0x82, 0x83, 0x01, 0x01, 0x81, 0x07, 0xa1, 0x00, 0x09], to: array)
    #expect(encoded { spliced.encode(into: &$0) } == [0x82, 0x09, 0x07])
  }
}
