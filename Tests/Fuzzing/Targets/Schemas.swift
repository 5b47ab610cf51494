import CBOR
import Documents
import Lockstep
import Schemas
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

/// A payload made from JSON is a valid action; an action by names, as logs show it, gives an action
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
    guard let action = try? named(payload, schema) else { return }
    requireSound(action.adopting(testSeed), "a payload by names")
    if isDocument, isAction(payload) { requireWritable(action) }
  }
}

private let documentSchema = DocumentFeature().schema

/// A payload by the names of a schema.
private func named(_ payload: [UInt8], _ schema: Schema) throws -> Value {
  try Translation(from: schema, to: .names, root: .action)
    .namedValue(of: payload, depth: ampleDepth)
}

/// Requires of a payload we made that it is CBOR, and, if the schema is ours, that it is an action
/// that has names.
private func requireReadable(_ payload: [UInt8], _ schema: Schema, _ isDocument: Bool) {
  require((try? CBORItem(payload, depth: ampleDepth)) != nil, "a payload is one item")
  guard isDocument else {
    _ = try? named(payload, schema)
    return
  }
  require(isAction(payload), "what JSON gives is an action: \(hex(payload))")
  do {
    let action = try named(payload, schema)
    requireSound(action.adopting(testSeed), "our own payload by names")
  } catch {
    fatalError("Broken: the schema names what it wrote: \(error) in \(hex(payload))")
  }
}

private func requireWritable(_ action: Value) {
  do {
    let payload = try ActionJSON.payload(of: action, schema: documentSchema)
    require(isAction(payload), "an action by names gives an action: \(hex(payload))")
  } catch {
    fatalError("Broken: an action by names is one: \(error) in \(JSON.text(action))")
  }
}

private func isAction(_ payload: [UInt8]) -> Bool {
  payload.withUnsafeBytes { bytes in
    var decoder = CBORDecoder(bytes)
    return (try? DocumentAction(from: &decoder, seed: testSeed)) != nil && decoder.isAtEnd
  }
}
