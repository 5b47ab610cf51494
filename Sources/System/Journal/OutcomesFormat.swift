import CBOR
import Values
import Wire

/// The outcomes of a session's actions as bytes of a snapshot: an array of acknowledgements as they
/// travel, a format that already has its versions and tests.
enum OutcomesFormat {
  static func encode(_ runs: [Acknowledgement]) -> [UInt8] {
    var encoder = CBOREncoder()
    encoder.array(runs.count)
    for run in runs { ServerMessage.acknowledgement(run).encode(into: &encoder) }
    return encoder.bytes
  }

  /// Nil when the bytes are not outcomes.
  static func decode(_ bytes: UnsafeRawBufferPointer) -> [Acknowledgement]? {
    do {
      var decoder = CBORDecoder(bytes)
      let count = try decoder.array()
      var runs: [Acknowledgement] = []
      for _ in 0..<count {
        guard
          case .acknowledgement(let run) =
            try ServerMessage(try decoder.rawItem(), seed: .unseeded)
        else { return nil }
        // In order, without gaps: code that calculates with them relies on it.
        guard run.first <= run.last, run.last < .max,
          runs.last.map({ $0.last + 1 == run.first }) ?? true
        else { return nil }
        runs.append(run)
      }
      return decoder.isAtEnd ? runs : nil
    } catch {
      return nil
    }
  }
}
