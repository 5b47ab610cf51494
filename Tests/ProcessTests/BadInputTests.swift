import CBOR
import ClientCore
import DaemonCore
import Documents
import Foundation
import Lockstep
import LockstepClient
import TestClient
import Testing
import Values
import Wire

/// Bad input gets a typed error with the offending value. A client that is connected the whole time
/// is not affected, and actions applied before stay applied.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct BadInputTests {
  /// Bytes that end a connection, and the goodbye they get.
  struct Offence: Sendable, CustomTestStringConvertible {
    let name: String
    let bytes: [UInt8]
    let code: GoodbyeCode
    /// Part of the goodbye's message.
    let says: String
    var testDescription: String { name }

    init(_ name: String, _ bytes: [UInt8], _ code: GoodbyeCode, _ says: String) {
      self.name = name
      self.bytes = bytes
      self.code = code
      self.says = says
    }
  }

  private static func frame(_ item: [UInt8]) -> [UInt8] {
    Frame.encode { $0.bytes.append(contentsOf: item) }
  }

  private static func message(_ message: ClientMessage) -> [UInt8] {
    Frame.encode { message.encode(into: &$0) }
  }

  private static let action = message(
    .action(number: 1, .applied, payload: DocumentAction.set(["a"], 1).payload))

  static let atFirst: [Offence] = [
    Offence("a frame over the limit", [0xff, 0xff, 0xff, 0x7f], .frameTooLarge, "2147483647"),
    Offence("an empty frame", [0, 0, 0, 0], .malformed, "byte 0"),
    Offence("malformed CBOR", frame([0xff]), .malformed, "break"),
    Offence("an action before hello", action, .outOfOrder, "hello"),
    Offence("a ping before hello", message(.ping(1)), .outOfOrder, "hello"),
    Offence(
      "a version that does not exist yet", message(.hello(.init(versions: 7...9, label: "x"))),
      .version, "7 to 9"),
    Offence(
      "versions the wrong way round", frame([0x86, 1, 0x82, 2, 1, 0x61, 0x78, 0xf6, 0xf6, 0xf6]),
      .malformed, "2 to 1"),
    Offence("an unknown message", frame([0x82, 0x18, 0x63, 1]), .unknownMessage, "99"),
    Offence("HTTP", Array("GET / HTTP/1.1\r\n\r\n".utf8), .frameTooLarge, "542393671"),
  ]

  static let later: [Offence] = [
    Offence(
      "hello twice", message(.hello(.init(versions: 1...1, label: "x"))), .outOfOrder, "hello"),
    Offence("a frame over the limit", [1, 0, 0, 1], .frameTooLarge, "16777217"),
    Offence("an empty frame", [0, 0, 0, 0], .malformed, "byte 0"),
    Offence("no array", frame([0x01]), .malformed, "unsigned integer"),
    Offence("an array that ends early", frame([0x84, 4, 2]), .malformed, "length 4"),
    Offence("bytes behind the message", frame([0x82, 5, 1, 0]), .malformed, "1"),
    Offence("an unknown message", frame([0x82, 9, 1]), .unknownMessage, "9"),
    Offence("a message of daemons", frame([0x83, 0x10, 7, 0]), .malformed, "pong"),
    Offence(
      "an action's number that is text", frame([0x84, 4, 0x61, 0x31, 0, 0]), .malformed, "text"),
    Offence(
      "an action out of order",
      message(.action(number: 3, .applied, payload: DocumentAction.set(["a"], 1).payload)),
      .outOfOrder, "3"),
    Offence("action 0", frame([0x84, 4, 0, 0, 0x82, 2, 0x80]), .outOfOrder, "0"),
    Offence("a mark that there is not", frame([0x84, 4, 2, 7, 0x82, 2, 0x80]), .malformed, "mark"),
    Offence("indefinite lengths", frame([0x9f, 5, 1, 0xff]), .malformed, "indefinite"),
    Offence("text that is no UTF-8", frame([0x83, 7, 1, 0x62, 0xc0, 0x80]), .malformed, "UTF-8"),
    Offence(
      "a label as long as gigabytes", frame([0x83, 7, 1, 0x7b, 0, 0, 0, 0xff, 0, 0, 0, 0]),
      .malformed, "1095216660480"),
    Offence(
      "nesting deeper than a message may",
      frame([0x84, 4, 2, 0] + [UInt8](repeating: 0x81, count: 200) + [0]), .malformed, "128"),
  ]

  /// A daemon with a client that must not be affected.
  private func withWitness(_ body: (Served) async throws -> Void) async throws {
    try await withDaemon { served in
      let witness = try await served.mirror()
      try await witness.send(DocumentAction.set(["before"], true))
      try await body(served)
      #expect(witness.status == .live)
      #expect(witness.counters.snapshots == 1)
      #expect(witness.value("/before") == true)
      try await witness.send(DocumentAction.set(["after"], true))
      let (ours, theirs) = try await witness.bothDigests()
      #expect(ours == theirs)
    }
  }

  @Test(arguments: atFirst)
  func `an invalid first message gets a goodbye with the reason`(offence: Offence) async throws {
    try await withWitness { served in
      let goodbye = try await blocking {
        let client = try served.raw()
        try client.send(offence.bytes)
        return try client.goodbye()
      }
      #expect(goodbye?.code == offence.code)
      #expect(goodbye?.message.contains(offence.says) == true, "\(goodbye?.message ?? "")")
    }
  }

  @Test(arguments: later)
  func `an invalid later message gets a goodbye, and earlier actions stay applied`(
    offence: Offence
  ) async throws {
    try await withWitness { served in
      let goodbye = try await blocking {
        let client = try served.raw()
        try client.greet()
        // In one write, so that the daemon reads both together.
        try client.send(
          Self.message(
            .action(
              number: 1, .applied, payload: DocumentAction.set(["kept"], true).payload))
            + offence.bytes)
        #expect(try client.acknowledgement().outcome == .reduced)
        return try client.goodbye()
      }
      #expect(goodbye?.code == offence.code)
      #expect(goodbye?.message.contains(offence.says) == true, "\(goodbye?.message ?? "")")
      if offence.code == .frameTooLarge {
        #expect(goodbye?.limit.map { offence.says == "\($0.observed)" } == true)
      }
      let mirror = try await served.mirror()
      #expect(mirror.value("/kept") == true)
      #expect(mirror.value("/a") == nil)
    }
  }

  @Test func `a path with too many keys is refused, and the connection stays open`() async throws {
    try await withWitness { served in
      try await blocking {
        let client = try served.raw()
        try client.greet()
        let path = Path([PathKey](repeating: .text("k"), count: 101))
        try client.send(.subscribe(subscription: 2, path, nil))
        try client.send(.ping(7))
        guard case .subscribed(let answer)? = try client.receive() else {
          Issue.record("there is no answer")
          return
        }
        #expect(answer.subscription == 2)
        #expect(answer.continuation == .refused && answer.reason == .limit)
        guard case .pong(7, _)? = try client.receive() else {
          Issue.record("there is no pong")
          return
        }
      }
    }
  }

  @Test func `a frame that ends with its connection changes nothing`() async throws {
    try await withWitness { served in
      try await blocking {
        for count in 1..<Self.action.count {
          let client = try served.raw()
          try client.greet()
          try client.send(Array(Self.action.prefix(count)))
          if count % 2 == 0 { client.shutdownSending() }
          client.close()
        }
      }
      let mirror = try await served.mirror()
      #expect(mirror.value("/a") == nil)
      try await eventually("all have gone") {
        try await mirror.connection.report("clients").elements.count == 2
      }
    }
  }

  // MARK: Actions

  private static func nested(_ depth: Int) -> Value {
    (0..<depth).reduce(.null) { value, _ in ["a": value] }
  }

  private static let unfit: [([UInt8], Rejection.Code, String)] = [
    ([0x82, 0x18, 0x63, 0x80], .unknownAction, "99"),
    ([0x82, 0x20, 0x80], .malformed, "negative"),
    ([0x00], .malformed, "0"),
    ([0x82, 0, 0x81, 0x61, 0x61], .malformed, "1"),
    (DocumentAction.set(["no", "such", "place"], 1).payload, .badPath, "no"),
    (DocumentAction.remove(["absent"]).payload, .badPath, "absent"),
    (DocumentAction.remove(["list", "01"]).payload, .badPath, "01"),
    (DocumentAction.insert(["list", "9"], 1).payload, .badPath, "9"),
    (DocumentAction.increment(["text"], by: 1).payload, .wrongType, "string"),
    (DocumentAction.append(["text"], 1).payload, .wrongType, "string"),
    (
      DocumentAction.increment(["largest"], by: 1).payload, .numberOutOfRange,
      "18446744073709551615"
    ),
    (DocumentAction.increment(["float"], by: .double(1e308)).payload, .numberOutOfRange, "1e+308"),
    (DocumentAction.test(["text"], 1).payload, .testFailed, "text"),
    (DocumentAction.set(["deep"], nested(100)).payload, .limit, "100"),
    (
      DocumentAction.transaction([.set(["kept"], 1), .test(["text"], "else")]).payload,
      .testFailed, "transaction[1]"
    ),
  ]

  @Test func `an invalid action is rejected with its reason, and the next one is performed`()
    async throws
  {
    try await withWitness { served in
      let mirror = try await served.mirror()
      let beginning: Value = [
        "text": "text", "list": [1], "largest": Value(UInt64.max), "float": .double(1.7e308),
      ]
      try await mirror.send(DocumentAction.merge(.root, beginning))
      for (payload, code, says) in Self.unfit {
        let revision = mirror.position?.revision
        do {
          try await mirror.connection.send(payload: payload)
          Issue.record("done: \(payload)")
        } catch ClientError.rejected(let rejection) {
          #expect(rejection.code == code.rawValue, "\(rejection)")
          #expect("\(rejection)".contains(says), "\(rejection)")
        }
        #expect(mirror.position?.revision == revision)
      }
      #expect(mirror.value("/kept") == nil)
      #expect(mirror.connection.rejections == UInt64(Self.unfit.count))
      try await mirror.send(DocumentAction.set(["deep"], Self.nested(99)))
    }
  }

  @Test func `random bytes affect neither the daemon nor other clients`() async throws {
    try await withWitness { served in
      try await blocking {
        var random = SplitMix64(7)
        for round in 0..<400 {
          let client = try served.raw()
          if round % 3 > 0 { try client.greet() }
          var bytes = (0..<Int.random(in: 1...200, using: &random)).map { _ in
            UInt8.random(in: 0...255, using: &random)
          }
          // Most are framed: otherwise nearly all lengths would exceed the limit.
          if round % 4 > 0 { bytes = Self.frame(bytes) }
          // Also a valid message with some random bytes.
          if round % 4 == 1 {
            bytes = Self.action
            for _ in 0..<3 {
              let place = Int.random(in: 4..<bytes.count, using: &random)
              bytes[place] = UInt8.random(in: 0...255, using: &random)
            }
          }
          // The daemon may already have closed a connection after its goodbye.
          try? client.send(bytes)
          if round % 5 == 0 {
            client.shutdownSending()
            _ = try client.goodbye()
          }
          client.close()
        }
      }
    }
  }
}
