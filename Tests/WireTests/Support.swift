import CBOR
import Foundation
import Values
import Wire

/// The bytes of a hex string. An invalid digit traps, because it is a mistake in the test.
func bytes(_ hex: String) -> [UInt8] {
  let digits = hex.map { UInt8($0.hexDigitValue!) }
  precondition(digits.count.isMultiple(of: 2), "Half a byte in \(hex).")
  return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

func hex(_ bytes: some Sequence<UInt8>) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var text: [UInt8] = []
  for byte in bytes { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
  return String(decoding: text, as: UTF8.self)
}

/// The bytes that a closure encodes.
func encoded(_ body: (inout CBOREncoder) -> Void) -> [UInt8] {
  var encoder = CBOREncoder()
  body(&encoder)
  return encoder.bytes
}

/// A message of either end.
enum Message: Equatable, CustomStringConvertible {
  case client(ClientMessage)
  case daemon(ServerMessage)

  init(_ bytes: [UInt8], from sender: Sender, seed: HashSeed = .unseeded) throws(WireError) {
    let result: Result<Message, WireError> = bytes.withUnsafeBytes { buffer in
      do throws(WireError) {
        switch sender {
        case .client: return .success(.client(try ClientMessage(buffer)))
        case .daemon: return .success(.daemon(try ServerMessage(buffer, seed: seed)))
        }
      } catch {
        return .failure(error)
      }
    }
    self = try result.get()
  }

  var bytes: [UInt8] {
    encoded { encoder in
      switch self {
      case .client(let message): message.encode(into: &encoder)
      case .daemon(let message): message.encode(into: &encoder)
      }
    }
  }

  var description: String {
    switch self {
    case .client(let message): "\(message)"
    case .daemon(let message): "\(message)"
    }
  }
}

enum Sender: String, Decodable {
  case client, daemon
}

/// Random numbers that are equal in every run.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    return Hashing.mix(state)
  }
}
