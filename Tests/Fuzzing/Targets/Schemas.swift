import CBOR
import Documents
import Lockstep
import Values

/// A schema that decodes survives a round trip.
func fuzzSchema(_ given: Input) {
  var input = given
  guard let schema = (input.decode { try Schema(from: &$0) }) else { return }
  let bytes = encoded { schema.encode(into: &$0) }
  do {
    let again = try CBORDecoder.read(bytes) { decoder throws(CBORError) in
      try Schema(from: &decoder)
    }
    require(again == schema, "the schema read again is the same")
    require(again.fingerprint == schema.fingerprint, "so is its fingerprint")
    require(encoded { again.encode(into: &$0) } == bytes, "so are its bytes")
  } catch {
    fatalError("Broken: a written schema reads: \(error)")
  }
}

/// A payload made from JSON is a valid action; the JSON made from a payload gives that payload
/// again.
/// Input: in the first byte, bit 0 selects a payload rather than JSON, and bit 1 a schema before it
/// in place of the documents' schema.
func fuzzActionJSON(_ given: Input) {
  var input = given
  let flags = input.byte()
  let isDocument = flags & 2 == 0
  var schema = documentSchema
  if !isDocument {
    guard let read = (input.decode { try Schema(from: &$0) }) else { return }
    schema = read
  }
  if flags & 1 == 0 {
    guard let json = try? JSON.parse(input.bytes, seed: testSeed, tagged: true),
      let payload = try? ActionJSON.payload(of: json, schema: schema)
    else { return }
    requireReadable(payload, schema, isDocument)
  } else {
    let payload = input.bytes
    guard let json = try? ActionJSON.value(ofPayload: payload, schema: schema) else { return }
    requireSound(json.adopting(testSeed), "the JSON of a payload")
    if isDocument, isAction(payload) { requireWritable(json) }
  }
}

private let documentSchema = DocumentFeature().schema

/// Requires of a payload we made that it is CBOR, that the schema reads it, and, if the schema is
/// ours, that it is an action.
private func requireReadable(_ payload: [UInt8], _ schema: Schema, _ isDocument: Bool) {
  require((try? CBORItem(payload, depth: ampleDepth)) != nil, "a payload is one item")
  guard isDocument else {
    _ = try? ActionJSON.value(ofPayload: payload, schema: schema)
    return
  }
  require(isAction(payload), "what JSON gives is an action: \(hex(payload))")
  do {
    let json = try ActionJSON.value(ofPayload: payload, schema: schema)
    requireSound(json.adopting(testSeed), "the JSON of our own payload")
  } catch {
    fatalError("Broken: the schema reads what it wrote: \(error) in \(hex(payload))")
  }
}

private func requireWritable(_ json: Value) {
  do {
    let payload = try ActionJSON.payload(of: json, schema: documentSchema)
    require(isAction(payload), "the JSON of an action gives an action: \(hex(payload))")
  } catch {
    fatalError("Broken: the JSON of an action is one: \(error) in \(JSON.text(json))")
  }
}

private func isAction(_ payload: [UInt8]) -> Bool {
  payload.withUnsafeBytes { bytes in
    var decoder = CBORDecoder(bytes)
    return (try? DocumentAction(from: &decoder, seed: testSeed)) != nil && decoder.isAtEnd
  }
}
