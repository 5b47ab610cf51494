import CBOR
import Values
import Wire

/// A message that decodes is well-formed, and survives a round trip.
func fuzzClientMessage(_ input: Input) {
  guard let message = try? ClientMessage(input.rest) else { return }
  requireWellFormed(input.bytes)
  let bytes = encoded { message.encode(into: &$0) }
  let again: ClientMessage
  do {
    again = try bytes.withUnsafeBytes { try ClientMessage($0) }
  } catch {
    fatalError("Broken: a written message reads: \(error) in \(hex(bytes))")
  }
  require(again == message, "the message read again is the same")
  require(encoded { again.encode(into: &$0) } == bytes, "the message written again is the same")
}

func fuzzServerMessage(_ input: Input) {
  guard let message = try? ServerMessage(input.rest, seed: testSeed) else { return }
  requireWellFormed(input.bytes)
  let bytes = encoded { message.encode(into: &$0) }
  let again: ServerMessage
  do {
    again = try bytes.withUnsafeBytes { try ServerMessage($0, seed: testSeed) }
  } catch {
    fatalError("Broken: a written message reads: \(error) in \(hex(bytes))")
  }
  require(again == message, "the message read again is the same")
  require(encoded { again.encode(into: &$0) } == bytes, "the message written again is the same")
}

private func requireWellFormed(_ bytes: [UInt8]) {
  do {
    _ = try CBORItem(bytes)
  } catch {
    fatalError("Broken: a message is one well-formed item: \(error)")
  }
}
