import CBOR
import Testing
import Values

@testable import Wire

@Suite struct MessageTests {
  static let vectors = MessageVector.file.vectors
  static let seed = MessageVector.file.hashSeed

  // MARK: Vectors

  @Test(arguments: vectors)
  func `a message is encoded as its vector`(vector: MessageVector) throws {
    #expect(hex(try vector.message(seed: Self.seed).bytes) == vector.hex)
  }

  @Test(arguments: vectors)
  func `a message vector decodes to its meaning`(vector: MessageVector) throws {
    let message = try Message(vector.encoded, from: vector.sender, seed: Self.seed)
    #expect(message == (try vector.message(seed: Self.seed)))
  }

  @Test func `there is a vector of every message type, under its name`() throws {
    for type in MessageType.allCases {
      let vectors = Self.vectors.filter { $0.type == "\(type)" }
      #expect(!vectors.isEmpty, "\(type)")
      for vector in vectors {
        #expect(vector.encoded[1] == type.rawValue)
        #expect((vector.sender == .client) == type.isFromClient)
      }
    }
  }

  @Test(arguments: VectorFile<BadMessage>("bad-messages.json").vectors)
  func `a bad message is refused with its code`(vector: BadMessage) throws {
    let error = #expect(throws: WireError.self) {
      try Message(bytes(vector.hex), from: vector.sender, seed: Self.seed)
    }
    #expect(error?.code.description == vector.error)
  }

  // MARK: Round trips

  @Test(arguments: interestingNumbers)
  func `every message survives a round trip with extreme numbers in every field`(
    number: UInt64
  ) throws {
    let messages = Message.all(number)
    #expect(Set(messages.map(\.type)) == Set(MessageType.allCases))
    for message in messages {
      #expect(try Message(message.bytes, from: message.sender) == message)
    }
  }

  /// The short form of most of them is held equal to the plain one.
  @Test(arguments: interestingNumbers)
  func `an acknowledgement's frame is a frame around its message`(number: UInt64) {
    for outcome in Message.outcomes(number) {
      for sequence in [nil] + interestingNumbers.map(UInt64?.some) {
        for reason in [nil, "the disk is full"] {
          for mark in [Mark.applied, .durable] {
            let acknowledgement = Acknowledgement(
              first: 24, last: number, revision: number, mark: mark, outcome, notDurable: reason,
              sequence: sequence)
            // Behind another one.
            let frames = encoded {
              acknowledgement.appendFrame(to: &$0)
              acknowledgement.appendFrame(to: &$0)
            }
            let frame = Frame.encode {
              ServerMessage.acknowledgement(acknowledgement).encode(into: &$0)
            }
            #expect(frames == frame + frame)
          }
        }
      }
    }
  }

  @Test func `an unknown reason of a later version is none`() throws {
    let message = try Message(bytes("860c0100021863182a"), from: .daemon)
    #expect(
      message
        == .daemon(
          .subscribed(.init(subscription: 1, scope: 0, .snapshot, .none, revision: 42))))
  }

  @Test func `a goodbye with an incomplete limit has none`() throws {
    let message = try Message(bytes("871509616c6178f601f6"), from: .daemon)
    #expect(message == .daemon(.goodbye(Goodbye(.limit, "l"))))
  }

  // MARK: Compatibility

  @Test(arguments: vectors)
  func `fields that a later version adds are skipped`(vector: MessageVector) throws {
    // Fields of this version that were omitted may be present as null.
    let extra = bytes("f6f6" + "1bffffffffffffffff" + "a161619f01ff" + "c17f6161ff")
    var longer = vector.encoded
    let isPatch = vector.type == "patch"
    longer[0] += isPatch ? 4 : 5
    longer += isPatch ? bytes("00f700f7") : extra
    let message = try Message(longer, from: vector.sender, seed: Self.seed)
    if !isPatch { #expect(message == (try vector.message(seed: Self.seed))) }
  }

  @Test(arguments: vectors)
  func `heads may be longer than needed`(vector: MessageVector) throws {
    // The heads of the array and of the type, in nine bytes each. A type takes one byte or two.
    let fields = vector.encoded[1] == 0x18 ? 3 : 2
    var longer = encoded { encoder in
      encoder.bytes += [0x9b] + [UInt8](repeating: 0, count: 7) + [vector.encoded[0] & 0x1f]
      encoder.bytes += [0x1b] + [UInt8](repeating: 0, count: 7) + [vector.encoded[fields - 1]]
    }
    longer += vector.encoded[fields...]
    let message = try Message(longer, from: vector.sender, seed: Self.seed)
    #expect(message == (try vector.message(seed: Self.seed)))
  }

  // MARK: Damage

  @Test(arguments: vectors)
  func `every truncation is an error`(vector: MessageVector) {
    let whole = vector.encoded
    for length in 0..<whole.count {
      #expect(throws: WireError.self) {
        try Message(Array(whole[..<length]), from: vector.sender, seed: Self.seed)
      }
    }
  }

  @Test(arguments: vectors)
  func `a byte after a message is an error`(vector: MessageVector) {
    #expect(throws: WireError.self) {
      try Message(vector.encoded + [0], from: vector.sender, seed: Self.seed)
    }
  }

  @Test(arguments: 0..<8)
  func `damaged messages never crash, and what decodes survives a round trip`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let samples = Self.vectors.map { ($0.encoded, $0.sender) }
    var read = 0
    for _ in 0..<25_000 {
      var (sample, sender) = samples.randomElement(using: &random)!
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: sample.indices, using: &random)
        sample[place] ^= UInt8.random(in: 1...255, using: &random)
      }
      guard let message = try? Message(sample, from: sender, seed: Self.seed) else { continue }
      read += 1
      let again = try Message(message.bytes, from: sender, seed: Self.seed)
      // `#require` would take most of the time.
      if again != message { Issue.record("\(hex(sample)) comes back as \(hex(message.bytes))") }
    }
    #expect(read > 1000, "Damage that is always noticed early tests little.")
  }
}

struct BadMessage: Decodable, CustomStringConvertible {
  let name: String
  let sender: Sender
  let hex: String
  let error: String

  var description: String { name }
}

/// The limits of head lengths and of numbers.
let interestingNumbers: [UInt64] = [
  0, 1, 23, 24, 0xff, 0x100, 0xffff, 0x1_0000, 0xffff_ffff, 0x1_0000_0000,
  UInt64(Int64.max), UInt64(Int64.max) + 1, .max - 1, .max,
]

extension Message {
  var sender: Sender {
    switch self {
    case .client: .client
    case .daemon: .daemon
    }
  }

  var type: MessageType {
    bytes.withUnsafeBytes { buffer in
      var decoder = CBORDecoder(buffer)
      return try! MessageHead(from: &decoder).type
    }
  }

  /// Every message, with `number` in every field that accepts any number.
  static func all(_ number: UInt64) -> [Message] {
    client(number).map { .client($0) } + daemon(number).map { .daemon($0) }
  }

  private static func client(_ number: UInt64) -> [ClientMessage] {
    let position = Position(epoch: number, run: number, revision: number)
    let path: Path = [.text(""), .text("é"), .integer(Int64(truncatingIfNeeded: number))]
    return [
      .hello(.init(versions: 0...number, label: String(repeating: "x", count: 300))),
      .hello(
        .init(
          versions: number...number, label: "", fingerprint: number,
          token: SessionToken(high: number, low: ~number), position: position,
          wantsDecisions: true)),
      .subscribe(subscription: number, path, position),
      .subscribe(subscription: number, .root, nil),
      .unsubscribe(subscription: number),
      .action(number: number, .applied, payload: encoded { $0.encode(number) }),
      .action(number: number, .durable, payload: [0xf7]),
      .ping(number),
      .digestRequest(subscription: number),
      .query(number: number, "status"),
      .query(number: number, "log", arguments: ["20", "é"]),
      .goodbye(GoodbyeCode(rawValue: number), "é"),
    ]
  }

  fileprivate static func outcomes(_ number: UInt64) -> [Acknowledgement.Outcome] {
    [
      .reduced, .unchanged, .swallowed, .accepted, .outcomeUnknown,
      .rejected(.init(code: number, message: "no", path: nil)),
      .rejected(.init(code: number, message: "", path: [.integer(.min), .text("a")])),
    ]
  }

  private static func daemon(_ number: UInt64) -> [ServerMessage] {
    let position = Position(epoch: number, run: number, revision: number)
    var breach = LimitBreach("frameBytes", limit: 0, observed: 0)
    (breach.limit, breach.observed) = (number, number)
    let schema = Schema(
      state: .type("S"), action: .value,
      types: [
        "S": .structure([.init(Int(clamping: number), "f", .map(key: .text, value: .bytes))])
      ])
    func welcome(_ schema: Schema?, _ durable: UInt64?) -> ServerMessage {
      .welcome(
        .init(
          version: number, position: position, seed: HashSeed(number),
          token: SessionToken(high: number, low: number), isResumed: schema == nil,
          lastAction: number, window: number, limits: [.init("a", number), .init("b", number)],
          schema: schema, peer: Peer(pid: number, uid: number, gid: number), durable: durable,
          session: durable))
    }
    let reasons = (0...8).map { ServerMessage.Reason(rawValue: $0)! }
    return [
      welcome(schema, nil), welcome(nil, number),
      .snapshot(.init(scope: number, revision: number, index: number, isLast: true, bytes: [])),
      .snapshot(
        .init(
          scope: number, revision: number, index: number, isLast: false,
          bytes: [UInt8](repeating: 7, count: 70_000))),
      .patch(scope: number, from: number, [.init(span: number, patch: [0xf7])]),
      .patch(
        scope: number, from: number,
        (0..<100).map { _ in .init(span: number, patch: encoded { $0.encode(number) }) }),
      .pong(number, revision: number),
      .bookmark(revision: number, durable: nil), .bookmark(revision: number, durable: number),
      .digest(subscription: number, revision: number, Digest(number)),
      .schema(schema),
      .report(number: number, Value(number)),
      .restarting(retryAfter: number),
      .restarted(Position(epoch: number, run: number, revision: number)),
      .decided(through: number, revision: number),
      .goodbye(Goodbye(GoodbyeCode(rawValue: number), "")),
      .goodbye(
        Goodbye(GoodbyeCode(rawValue: number), "é", limit: breach, retryAfter: number)),
    ]
      + outcomes(number).map {
        .acknowledgement(
          Acknowledgement(first: 0, last: number, revision: number, mark: .durable, $0))
      }
      + reasons.map {
        .subscribed(
          .init(subscription: number, scope: number, .refused, $0, revision: number))
      }
  }
}
