import CBOR
import Documents
import Lockstep
import Values

/// An action survives a round trip. A document performs it or stays unchanged, and the patch of the
/// change is the difference. Input: the document, then actions.
func fuzzActions(_ given: Input) {
  var input = given
  guard let root = input.value() else { return }
  let feature = DocumentFeature()
  var document = Document(root, seed: testSeed)
  for _ in 0..<32 {
    guard let action = (input.decode { try DocumentAction(from: &$0, seed: testSeed) }) else {
      return
    }
    requireTravels(action)
    reduce(action, feature, &document)
    // A document may grow with every action; large ones would take too much of the fuzzer's time.
    if encoded({ document.encode(into: &$0) }).count > 1 << 18 { return }
  }
}

private func reduce(
  _ action: DocumentAction, _ feature: DocumentFeature, _ document: inout Document
) {
  let before = document.root
  do throws(Rejection) {
    _ = try feature.reduce(into: &document, action: action)
  } catch {
    _ = error.description
    document.rollBack()
    require(document.root.isSame(as: before), "a rejected action does nothing")
    requireSound(document.root, "the document after a rejected action")
    return
  }
  requireSound(document.root, "the document after an action")
  let after = document.root
  var undone = document
  undone.rollBack()
  require(undone.root.isSame(as: before), "an action can be undone")
  requireSound(undone.root, "the document after an action was undone")
  var patch = CBOREncoder()
  let isChanged = document.settle(into: &patch)
  require(isChanged == !after.isSame(as: before), "a document knows whether it changed")
  require(
    (isChanged ? patch.bytes : nil) == difference(from: before, to: after),
    "what a document notes is the difference")
  requireLaw(from: before, to: after)
  if isChanged, depth(before) <= 100 {
    require(
      (try? CBORItem(patch.bytes)) != nil, "a patch stays within the depth that peers can read")
  }
}

/// The depth of a document as its limit counts it: an array is two levels.
private func depth(_ value: Value) -> Int {
  switch value {
  case .object(let entries): 1 + (entries.values.map(depth).max() ?? 0)
  case .array(let elements): 2 + (elements.map(depth).max() ?? 0)
  case .null, .bool, .integer, .unsigned, .double, .text, .bytes: 0
  }
}

/// Requires that a decoded action survives a round trip.
func requireTravels(_ action: DocumentAction) {
  let bytes = encoded { action.encode(into: &$0) }
  do {
    let again = try CBORDecoder.read(bytes, depth: ampleDepth) {
      (decoder) throws(CBORError) in
      try DocumentAction(from: &decoder, seed: testSeed)
    }
    require(again == action, "the action read again is the same")
    require(encoded { again.encode(into: &$0) } == bytes, "so are its bytes")
  } catch {
    fatalError("Broken: a written action reads: \(error) in \(hex(bytes))")
  }
}
