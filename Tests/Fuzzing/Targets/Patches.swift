import CBOR
import Documents
import Values

/// Any bytes are a patch or an error, for values and documents alike, and a document can roll back.
/// Input: the value, or the number of one of ours, and patches of it.
func fuzzPatch(_ given: Input) {
  var input = given
  guard var base = input.value() else { return }
  if case .integer(let number) = base { base = bases[abs(Int(number % Int64(bases.count)))] }
  var rounds = 0
  while !input.isEmpty, rounds < 8 {
    // The rest may be another patch. Bytes that are not one item are tried as a patch too.
    let item = input.decode { decoder in [UInt8](try decoder.rawItem()) }
    guard let result = patched(base, by: item ?? input.bytes) else { return }
    base = result
    rounds += 1
  }
}

private func patched(_ base: Value, by patch: [UInt8]) -> Value? {
  var result = base
  let error = apply(patch, to: &result)
  var document = Document(base, seed: testSeed)
  let documentError = apply(patch, to: &document)
  require((error == nil) == (documentError == nil), "a document takes the patches that values take")
  requireLeft(base)
  guard error == nil else {
    document.rollBack()
    require(document.root.isSame(as: base), "a failed patch can be undone")
    requireSound(document.root, "the document after a failed patch")
    return nil
  }
  require(document.root.isSame(as: result), "a patched document is the patched value")
  requireSound(result, "the patched value")
  requireSound(document.root, "the patched document")
  requireLaw(from: base, to: result)
  var settling = document
  var settled = CBOREncoder()
  let isChanged = settling.settle(into: &settled)
  require(isChanged == !base.isSame(as: result), "a document knows whether it changed")
  require(
    (isChanged ? settled.bytes : nil) == difference(from: base, to: result),
    "what a document notes is the difference")
  document.rollBack()
  require(document.root.isSame(as: base), "a patch can be undone")
  requireSound(document.root, "the document after a patch was undone")
  return result
}

/// Requires that applying a patch to a copy left the original unchanged.
private func requireLeft(_ base: Value) { requireSound(base, "the value that was not patched") }

private let bases: [Value] = {
  func read(_ text: String) -> Value {
    guard let value = try? JSON.parse(text, seed: testSeed) else { fatalError("Not JSON: \(text)") }
    return value
  }
  let long = (0..<200).map { "\"k\($0)\":\($0)" }.joined(separator: ",")
  let list = (0..<150).map { "\($0)" }.joined(separator: ",")
  return [
    read("null"), read("{}"), read("[]"),
    read(#"{"lamp":{"on":true,"level":80},"tags":["a","b"],"title":"Kitchen"}"#),
    read("[1,2,3,{\"a\":[[],{}]},5]"), read("{\(long)}"), read("[\(list)]"),
    read("{\"a\":{\"b\":{\"c\":{\"d\":[1,[2,[3]]]}}}}"), read("{\"a\":[\(list)],\"b\":{\(long)}}"),
  ]
}()
