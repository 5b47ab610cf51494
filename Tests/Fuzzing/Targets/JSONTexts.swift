import CBOR
import Documents
import Values

/// A value read from JSON survives a round trip, in every form of JSON.
func fuzzJSON(_ input: Input) {
  for tagged in [false, true] {
    let value: Value
    do {
      value = try JSON.parse(input.rest, seed: testSeed, tagged: tagged)
    } catch {
      require(error.offset <= input.rest.count, "the error is inside the text")
      require(error.line > 0 && error.column > 0, "lines and columns count from 1")
      _ = error.description
      continue
    }
    requireSound(value, "what JSON gives")
    for form in 0..<4 { requireSame(value, tagged, isPretty: form & 1 != 0, isSorted: form > 1) }
    if let action = try? JSONPatch.actions(from: value) { requireTravels(action) }
  }
}

private func requireSame(_ value: Value, _ tagged: Bool, isPretty: Bool, isSorted: Bool) {
  let text = JSON.text(value, pretty: isPretty, sortedKeys: isSorted)
  do {
    let again = try JSON.parse(text, seed: testSeed, tagged: tagged)
    require(again.isSame(as: value), "JSON written and read is the same: \(text)")
  } catch {
    fatalError("Broken: what is written as JSON reads: \(error) in \(text)")
  }
}
