import CBOR
import Testing
import Values
import Wire

@testable import DaemonCore

@Suite struct FramesTests {
  @Test(arguments: 0..<200)
  func `they are a list of frames, whatever holds them`(seed: UInt64) {
    var random = SplitMix64(seed)
    var (list, frames): ([[UInt8]], Frames) = ([], .none)
    var shared: [(list: [[UInt8]], frames: Frames)] = []
    for step in 0..<12 {
      let frame = [UInt8](repeating: UInt8(step), count: Int.random(in: 0...3, using: &random))
      switch Int.random(in: 0..<4, using: &random) {
      case 0 where list.count > 2:
        list[list.count - 1] += frame
        frames.append(toLast: frame)
      case 1: shared.append((list, frames))
      default:
        list.append(frame)
        frames.append(frame)
      }
      for (list, frames) in shared + [(list, frames)] {
        #expect(Array(frames) == list && frames.count == list.count && frames == Frames(list))
        #expect(frames.isEmpty == list.isEmpty && frames.byteCount == list.joined().count)
      }
    }
  }

  @Test func `other frames, or as many others, are not the same`() {
    let all: [Frames] = [
      [], [[]], [[], []], [[1]], [[1], [2]], [[1], [2], [3]], [[1], [3], [2]],
    ]
    for (index, one) in all.enumerated() {
      for (place, other) in all.enumerated() { #expect((one == other) == (index == place)) }
    }
  }

  @Test(arguments: [0, 23, 24, 255, 256, 65_536, .max] as [UInt64])
  func `the frame of patches is a frame around their message`(number: UInt64) {
    for count in [1, 2, 11, 12, 127, 128, 300] {
      let patches = (0..<count).map {
        ServerMessage.SpanPatch(span: number, patch: [UInt8](repeating: 1, count: 1 + $0))
      }
      var pairs = CBOREncoder()
      for patch in patches {
        pairs.encode(patch.span)
        pairs.raw(patch.patch)
      }
      #expect(
        StreamFrames.patches(pairs.bytes, count: count, scope: number, from: number)
          == frame(.patch(scope: number, from: number, patches)))
    }
  }
}
