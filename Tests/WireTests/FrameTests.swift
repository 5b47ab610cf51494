import CBOR
import Glibc
import Testing
import Wire

@Suite struct FrameTests {
  /// Items of many lengths, and their frames one after the other.
  private static let items: [[UInt8]] = (0..<60).map { index in
    [UInt8](repeating: UInt8(index), count: [0, 1, 3, 4, 5, 200, 5_000][index % 7])
  }
  private static let stream: [UInt8] = items.flatMap(frame)

  private static func frame(_ item: [UInt8]) -> [UInt8] { Frame.encode { $0.raw(item) } }

  @Test func `a frame is its length, least significant byte first, and its item`() {
    #expect(hex(Self.frame(bytes("820507"))) == "03000000820507")
    #expect(
      Self.frame([UInt8](repeating: 0, count: 0x1_0203)).prefix(4) == [0x03, 0x02, 0x01, 0x00])
  }

  @Test func `frames that arrive all at once are split`() throws {
    #expect(try receive([Self.stream]) == Self.items)
  }

  @Test func `a frame that arrives alone is decoded`() throws {
    #expect(try receive(Self.items.map(Self.frame)) == Self.items)
  }

  @Test func `a stream that arrives byte by byte is split into frames`() throws {
    #expect(try receive(Self.stream.map { [$0] }) == Self.items)
  }

  @Test(arguments: 0..<100)
  func `a stream cut at any positions is split into frames`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let longest = [2, 10, 1000, 20_000].randomElement(using: &random)!
    var pieces: [[UInt8]] = []
    var rest = Self.stream[...]
    while !rest.isEmpty {
      let length = min(Int.random(in: 0...longest, using: &random), rest.count)
      pieces.append(Array(rest.prefix(length)))
      rest = rest.dropFirst(length)
    }
    #expect(try receive(pieces) == Self.items)
  }

  @Test func `a frame of the limit is accepted, one byte more is not`() throws {
    let item = [UInt8](repeating: 1, count: 100)
    #expect(try receive([Self.frame(item)], limit: 100) == [item])
    #expect(throws: tooLarge(100, limit: 99)) { try receive([Self.frame(item)], limit: 99) }
    #expect(throws: tooLarge(100, limit: 99)) {
      try receive(Self.frame(item).map { [$0] }, limit: 99)
    }
  }

  @Test func `a length over the limit is refused before its item arrives`() {
    var decoder = FrameDecoder(limit: 1000)
    #expect(throws: tooLarge(1001, limit: 1000)) {
      try decoder.take([0xe9, 0x03, 0, 0]) { _ in }
    }
  }

  @Test func `only bytes that have arrived are buffered, whatever the length says`() throws {
    var decoder = FrameDecoder(limit: .max)
    try decoder.take([0xff, 0xff, 0xff, 0xff]) { _ in }
    #expect(decoder.buffered == 4)
    for count in 1...1000 {
      try decoder.take([0]) { _ in }
      #expect(decoder.buffered == 4 + count)
    }
  }

  @Test func `nothing is buffered between whole frames`() throws {
    var decoder = FrameDecoder(limit: 1 << 20)
    for piece in Self.items.map(Self.frame) {
      try decoder.take(Array(piece.prefix(2))) { _ in }
      #expect(decoder.buffered == 2)
      try decoder.take(Array(piece.dropFirst(2))) { _ in }
      #expect(decoder.buffered == 0)
    }
  }

  @Test func `frames before a bad one are delivered`() {
    var decoder = FrameDecoder(limit: 10)
    var seen: [[UInt8]] = []
    #expect(throws: WireError.self) {
      try decoder.take(bytes("03000000820507" + "ff000000")) { seen.append($0) }
    }
    #expect(seen == [bytes("820507")])
  }

  @Test(arguments: [false, true])
  func `an error of the receiver stops the stream`(isSplit: Bool) {
    let error = WireError(.malformed, "no")
    var decoder = FrameDecoder(limit: 10)
    var count = 0
    #expect(throws: error) {
      let stream = bytes("0100000000" + "0100000000")
      for piece in isSplit ? stream.map({ [$0] }) : [stream] {
        try decoder.take(piece) { (_) throws(WireError) in
          count += 1
          throw error
        }
      }
    }
    #expect(count == 1)
  }

  // MARK: Stopping

  @Test(arguments: [FrameDecoder.Step.stopBefore, .postpone])
  func `a reader that stops before a frame sees it again, wherever the stream was split`(
    step: FrameDecoder.Step
  ) throws {
    let stream = Self.items.flatMap(Self.frame)
    for split in 0...stream.count {
      var decoder = FrameDecoder(limit: 1 << 20)
      var (seen, stops) = (SeenItems(of: Self.items), 0)
      // Each item is refused the first time that it is seen.
      var isKnown = false
      func read(_ item: UnsafeRawBufferPointer) -> FrameDecoder.Step {
        defer { isKnown.toggle() }
        if isKnown {
          seen.append(item)
          return .goOn
        }
        stops += 1
        return step
      }
      for piece in [stream[..<split], stream[split...]] {
        try decoder.receive(Array(piece), read)
        while decoder.isHeld {
          if step == .stopBefore {
            let item = try #require(decoder.heldItem)
            #expect(decoder.isBeforeFrame && decoder.unfinished == decoder.buffered)
            #expect(decoder.unparsed[item].withUnsafeBytes(seen.isNext))
          } else {
            #expect(decoder.heldItem == nil && decoder.unfinished == 0)
          }
          try decoder.release(read)
        }
        #expect(decoder.heldItem == nil)
      }
      #expect(seen.areAll && stops == seen.count)
    }
  }

  @Test func `a reader that rests is held where there is more, and only there`() throws {
    let stream = Self.items.flatMap(Self.frame)
    var ends: Set<Int> = []
    for item in Self.items { ends.insert((ends.max() ?? 0) + Self.frame(item).count) }
    for split in 0...stream.count {
      var decoder = FrameDecoder(limit: 1 << 20)
      var (seen, taken) = (SeenItems(of: Self.items), 0)
      func read(_ item: UnsafeRawBufferPointer) -> FrameDecoder.Step {
        seen.append(item)
        return .rest
      }
      for piece in [stream[..<split], stream[split...]] {
        try decoder.receive(Array(piece), read)
        taken += piece.count
        while decoder.isHeld {
          // One at a time, and there are bytes behind it.
          #expect(decoder.buffered > 0 && decoder.unfinished == 0 && !decoder.isBeforeFrame)
          let before = seen.count
          try decoder.release(read)
          #expect(seen.count <= before + 1)
        }
        #expect(seen.count == ends.count { $0 <= taken })
      }
      #expect(seen.areAll && decoder.buffered == 0)
    }
  }

  @Test func `a frame that a reader stops before again is not copied`() throws {
    var decoder = FrameDecoder(limit: 1 << 20)
    try decoder.receive(Self.frame([UInt8](repeating: 7, count: 1000))) { _ in .stopBefore }
    let place = decoder.unparsed.withUnsafeBytes { $0.baseAddress }
    try decoder.release { _ in .stopBefore }
    #expect(decoder.isBeforeFrame && decoder.unparsed.withUnsafeBytes { $0.baseAddress } == place)
  }

  @Test func `what comes while a frame is held is kept behind it`() throws {
    var decoder = FrameDecoder(limit: 1 << 20)
    for item in Self.items { try decoder.receive(Self.frame(item)) { _ in .stopBefore } }
    #expect(decoder.unparsed == Self.items.flatMap(Self.frame))
    var seen: [[UInt8]] = []
    try decoder.release {
      seen.append(Array($0))
      return .goOn
    }
    #expect(seen == Self.items && decoder.buffered == 0 && !decoder.isHeld)
  }

  // MARK: Vectors

  @Test(arguments: VectorFile<BadFrame>("bad-frames.json").vectors, [false, true])
  func `a bad frame ends its stream with its code`(vector: BadFrame, byByte: Bool) throws {
    var decoder = FrameDecoder(limit: vector.limit)
    var seen: [String] = []
    var error: String?
    let stream = bytes(vector.hex)
    do throws(WireError) {
      for piece in byByte ? stream.map({ [$0] }) : [stream] {
        try decoder.take(piece) { (item) throws(WireError) in
          seen.append(hex(item))
          _ = try Message(item, from: .client)
        }
      }
    } catch let failure {
      error = failure.code.description
    }
    if error == nil && decoder.buffered > 0 { error = "incomplete" }
    #expect(seen == vector.items)
    #expect(error == vector.error)
  }
}

struct BadFrame: Decodable, CustomStringConvertible {
  let name: String
  let hex: String
  let limit: Int
  let items: [String]
  let error: String

  var description: String { name }
}

/// The items that a reader has seen, compared with those that were sent. By `memcmp`: the library's
/// comparison of arrays, in a build for tests, takes a function's call for each byte.
private struct SeenItems {
  private let sent: [[UInt8]]
  private(set) var count = 0
  private var areSame = true

  init(of sent: [[UInt8]]) { self.sent = sent }

  var areAll: Bool { areSame && count == sent.count }

  func isNext(_ item: UnsafeRawBufferPointer) -> Bool {
    guard sent.indices.contains(count), item.count == sent[count].count else { return false }
    return sent[count].withUnsafeBytes { next in
      // An empty buffer may have no address.
      guard let mine = item.baseAddress, let its = next.baseAddress else { return item.isEmpty }
      return memcmp(mine, its, next.count) == 0
    }
  }

  mutating func append(_ item: UnsafeRawBufferPointer) {
    areSame = areSame && isNext(item)
    count += 1
  }
}

private func tooLarge(_ length: Int, limit: Int) -> WireError {
  WireError(
    .frameTooLarge, "a frame of \(length) bytes is over the limit of \(limit)",
    limit: LimitBreach("frameBytes", limit: limit, observed: length))
}

/// The items of a stream that arrives in pieces. Checks that no more than an incomplete frame is
/// buffered.
private func receive(_ pieces: [[UInt8]], limit: Int = 1 << 20) throws -> [[UInt8]] {
  var decoder = FrameDecoder(limit: limit)
  var items: [[UInt8]] = []
  var arrived = 0
  var handedOn = 0
  var isExact = true
  for piece in pieces {
    arrived += piece.count
    try decoder.take(piece) {
      items.append($0)
      handedOn += Frame.headLength + $0.count
    }
    isExact = isExact && decoder.buffered == arrived - handedOn
  }
  #expect(isExact, "Buffered is what has come of the frame that is not whole.")
  return items
}

extension FrameDecoder {
  fileprivate mutating func receive(
    _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws(WireError) -> Step
  ) throws(WireError) {
    let result: Result<Void, WireError> = bytes.withUnsafeBytes { buffer in
      do throws(WireError) { return .success(try receive(buffer, body)) } catch {
        return .failure(error)
      }
    }
    try result.get()
  }

  fileprivate mutating func take(
    _ bytes: [UInt8], _ body: ([UInt8]) throws(WireError) -> Void
  ) throws(WireError) {
    let result: Result<Void, WireError> = bytes.withUnsafeBytes { buffer in
      do throws(WireError) {
        return .success(
          try receiveAll(buffer) { (item) throws(WireError) in try body([UInt8](item)) })
      } catch {
        return .failure(error)
      }
    }
    try result.get()
  }
}
