import CBOR
import Documents
import Lockstep
import Testing
import Values

/// A generator with a seed (SplitMix64), so that a failure can be repeated.
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  init(_ seed: Int) { state = UInt64(truncatingIfNeeded: seed) &* 0x9e37_79b9_7f4a_7c15 }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    return Hashing.mix(state)
  }

  mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }
  mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
}

let testSeed = HashSeed(0x5eed)

func json(_ text: String) throws -> Value { try JSON.parse(text, seed: testSeed) }

func document(_ text: String) throws -> Document { Document(try json(text), seed: testSeed) }

func pointer(_ text: String) throws -> Path {
  guard let path = Path(pointer: text) else { throw JSONPatchError("bad pointer \(text)") }
  return path
}

/// The document after an action, or the rejection and the unchanged document.
func reduce(
  _ action: DocumentAction, into document: inout Document, limits: DocumentFeature.Limits? = nil
) throws(Rejection) {
  let feature = limits.map { DocumentFeature(limits: $0) } ?? DocumentFeature()
  do throws(Rejection) {
    _ = try feature.reduce(into: &document, action: action)
  } catch {
    document.rollBack()
    throw error
  }
  _ = settled(&document)
}

/// The rejection of an action on a document given as JSON; nil when the action succeeds.
func rejection(_ action: DocumentAction, on text: String) throws -> Rejection? {
  var document = try document(text)
  do throws(Rejection) {
    try reduce(action, into: &document)
  } catch {
    let before = try json(text)
    #expect(document.root == before, "a rejected action must change nothing")
    return error
  }
  return nil
}

func result(_ action: DocumentAction, on text: String) throws -> String {
  var document = try document(text)
  try reduce(action, into: &document)
  return JSON.text(document.root, sortedKeys: true)
}

func encoded(_ value: some Synchronizable) -> [UInt8] {
  var encoder = CBOREncoder()
  value.encode(into: &encoder)
  return encoder.bytes
}

func payload(_ action: DocumentAction) -> [UInt8] {
  var encoder = CBOREncoder()
  action.encode(into: &encoder)
  return encoder.bytes
}

/// The patch from one value to another; empty when they are equal.
func difference<T: Synchronizable>(from old: T, to new: T) -> [UInt8] {
  var encoder = CBOREncoder()
  #expect(new.encodeDifference(from: old, into: &encoder) == !encoder.bytes.isEmpty)
  return encoder.bytes
}

/// The patch of the transaction; empty when nothing changed.
func settled(_ document: inout Document) -> [UInt8] {
  var encoder = CBOREncoder()
  let isChanged = document.settle(into: &encoder)
  #expect(isChanged == !encoder.bytes.isEmpty)
  return encoder.bytes
}

func apply(_ patch: [UInt8], to value: inout some Synchronizable) throws(CBORError) {
  try CBORDecoder.read(patch) { (decoder) throws(CBORError) in
    try value.apply(patch: &decoder, seed: testSeed)
  }
}

func decodedAction(_ payload: [UInt8]) throws(CBORError) -> DocumentAction {
  try CBORDecoder.read(payload) {
    (decoder) throws(CBORError) in try DocumentAction(from: &decoder, seed: testSeed)
  }
}
