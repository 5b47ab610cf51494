import CBOR

/// Decoding an item and skipping it agree; an item survives a round trip.
func fuzzItem(_ input: Input) {
  let decoded = outcome(input.rest) { decoder throws(CBORError) in
    try CBORItem(from: &decoder)
  }
  let skipped = outcome(input.rest) { decoder throws(CBORError) in
    try decoder.skip()
    return CBORItem.null
  }
  require(decoded.end == skipped.end, "skipping ends where decoding does")
  require(decoded.error == skipped.error, "skipping fails as decoding does")
  guard let item = decoded.item else { return }
  _ = item.description
  let bytes = encoded { item.encode(into: &$0) }
  require((try? CBORItem(bytes)) == item, "the item read again is the same")
}

private func outcome(
  _ bytes: UnsafeRawBufferPointer, _ body: (inout CBORDecoder) throws(CBORError) -> CBORItem
) -> (item: CBORItem?, end: Int?, error: CBORError?) {
  var decoder = CBORDecoder(bytes)
  do throws(CBORError) {
    let item = try body(&decoder)
    return (item, decoder.offset, nil)
  } catch {
    require(decoder.offset <= bytes.count, "the decoder stays inside the buffer")
    require(error.offset <= bytes.count, "the error is inside the buffer")
    return (nil, nil, error)
  }
}
