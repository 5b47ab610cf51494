import CBOR
import Lockstep
import Values
import Wire

/// Reads a recording: what the server began with, and then the pieces.
struct RecordingReader<R: Reducer>: Sendable {
  enum Piece {
    case event(Instant, Event<R.Action>)
    /// What the event before it led to.
    case commands(hash: UInt64, count: Int, revision: UInt64)
    case end(revision: UInt64, Digest)
  }

  let setup: ServerSetup<R.State>
  private let bytes: [UInt8]
  private var offset: Int
  /// The number of events that have been read.
  private(set) var events = 0

  /// Read the first piece. Throws if it cannot be read.
  init(_ bytes: [UInt8]) throws(RecordingError) {
    guard bytes.starts(with: Recording.magic) else {
      throw RecordingError("it is no recording of a daemon")
    }
    self.bytes = bytes
    offset = Recording.magic.count
    guard let head = Self.take(bytes, &offset) else {
      throw RecordingError("the recording breaks off before the daemon began")
    }
    do throws(CBORError) {
      setup = try CBORDecoder.read(Array(head)) { (decoder) throws(CBORError) in
        try decoder.expectArray(2, "a recording's head")
        _ = try decoder.unsigned()
        let setup = try ServerSetup<R.State>(from: &decoder, schema: R.schema)
        decoder.close()
        return setup
      }
    } catch {
      throw RecordingError("the recording's beginning cannot be read: \(error)")
    }
  }

  /// The next piece; nil if the recording ends, or breaks off. O(its bytes).
  mutating func next() throws(RecordingError) -> Piece? {
    while let bytes = Self.take(bytes, &offset) {
      do throws(CBORError) {
        let piece = try CBORDecoder.read(Array(bytes), depth: 256) { (decoder) throws(CBORError) in
          defer { decoder.close() }
          _ = try decoder.array()
          let kind = Recording.Piece(rawValue: try decoder.unsigned())
          return try self.piece(kind, &decoder)
        }
        if case .event = piece { events += 1 }
        if let piece { return piece }
      } catch {
        throw RecordingError("what follows event \(events) cannot be read: \(error)")
      }
    }
    return nil
  }

  private func piece(
    _ kind: Recording.Piece?, _ decoder: inout CBORDecoder
  ) throws(CBORError) -> Piece? {
    switch kind {
    case .event:
      let time = Instant(nanoseconds: try decoder.unsigned())
      return .event(time, try Event(from: &decoder, seed: setup.kept.seed))
    case .commands:
      return .commands(
        hash: try decoder.unsigned(), count: try decoder.int(), revision: try decoder.unsigned())
    case .end: return .end(revision: try decoder.unsigned(), Digest(try decoder.unsigned()))
    case .head, nil: return nil
    }
  }

  /// The next piece; nil if the recording ends, or breaks off.
  private static func take(_ bytes: [UInt8], _ offset: inout Int) -> ArraySlice<UInt8>? {
    guard bytes.count - offset >= 4 else { return nil }
    let length = (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
    guard bytes.count - offset - 4 >= length else { return nil }
    defer { offset += 4 + length }
    return bytes[(offset + 4)..<(offset + 4 + length)]
  }
}
