import CBOR
import Lockstep
import LockstepTesting
import Testing
import Values

@Suite("Dependencies")
struct DependencyTests {
  private enum WordKey: DependencyKey {
    static var liveValue: String { "live" }
    static var testValue: String { "test" }
  }

  private enum NumberKey: DependencyKey {
    static var liveValue: Int { 1 }
  }

  @Test("RED-08, 3.3.F: a key has its live value, its test value, or the value that was set")
  func keys() {
    var values = DependencyValues()
    #expect(values[WordKey.self] == "live" && values[NumberKey.self] == 1)
    values.isTesting = true
    #expect(values[WordKey.self] == "test" && values[NumberKey.self] == 1)
    values[WordKey.self] = "own"
    #expect(values[WordKey.self] == "own")
  }

  @Test("RED-08: dependencies are overridden for the duration of a call")
  func forAWhile() async {
    let date = DateGenerator.constant(Timestamp(nanoseconds: 3))
    withDependencies {
      $0.date = date
    } operation: { [] in
      #expect(DependencyValues.current.date().nanoseconds == 3)
    }
    await withDependencies {
      $0.date = date
    } operation: {
      await Task.yield()
      #expect(DependencyValues.current.date().nanoseconds == 3)
    }
    #expect(DependencyValues.current.date().nanoseconds == 0)
  }

  @Test("RED-08: an effect runs with the dependencies of the reducer that made it")
  func ofEffects() async {
    let store = TestStore(initialState: Trace()) {
      Script.script { action in
        action == "go"
          ? .run { send in await send(Act(DependencyValues.current[WordKey.self])) } : .none
      }
    } withDependencies: {
      $0[WordKey.self] = "captured"
    }
    await store.send("go") { $0.log = ["go"] }
    await store.receive("captured") { $0.log.append("captured") }
    await store.finish()
  }

  // MARK: Origin

  @Test("RED-08: only a reduction knows the origin of its action")
  func origin() async {
    let store = TestStore(initialState: Trace()) {
      Script { state, action in
        @Dependency(\.origin) var origin
        @Dependency(\.cause) var cause
        state.log.append("\(origin?.description ?? "?") \(cause?.parent ?? 0)")
        if action == "end" { return .none }
        return .run(name: "work") { send in
          await send(DependencyValues.current.origin == nil ? "end" : "known")
        }
      }
    }
    await store.send("go", from: .client(session: 4)) {
      $0.log = ["client 4 (pid 4, uid 1000) 0"]
    }
    await store.receive("end") { $0.log.append("effect work 1") }
    await store.finish()
    #expect(DependencyValues.current.cause == nil)
  }

  // MARK: Timestamp

  @Test(
    "3.1: a timestamp is described as ISO 8601",
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"),
      (1_700_000_000_123_456_789, "2023-11-14T22:13:20.123Z"),
      (951_782_400_000_000_000, "2000-02-29T00:00:00.000Z"),
      (4_107_542_399_999_000_000, "2100-02-28T23:59:59.999Z"),
      (-1, "1969-12-31T23:59:59.999Z"),
      (-1_000_000, "1969-12-31T23:59:59.999Z"),
      (-1_000_001, "1969-12-31T23:59:59.998Z"),
      (Int64.max, "2262-04-11T23:47:16.854Z"),
      (Int64.min, "1677-09-21T00:12:43.145Z"),
    ])
  func timestamp(nanoseconds: Int64, text: String) {
    #expect(Timestamp(nanoseconds: nanoseconds).description == text)
  }

  @Test("3.1: a timestamp out of range is clamped")
  func timestampSums() {
    let zero = Timestamp(nanoseconds: 0)
    #expect((zero + .milliseconds(1500)).nanoseconds == 1_500_000_000)
    #expect((zero + .milliseconds(-1500)).nanoseconds == -1_500_000_000)
    #expect((zero + .seconds(Int64.max)).nanoseconds == .max)
    #expect((zero + .seconds(Int64.min)).nanoseconds == .min)
    #expect((Timestamp(nanoseconds: .max) + .nanoseconds(1)).nanoseconds == .max)
    #expect((Timestamp(nanoseconds: .min) + .nanoseconds(-1)).nanoseconds == .min)
    // The whole seconds fit, and the fraction overflows.
    #expect((zero + .nanoseconds(Int64.max) + .milliseconds(1)).nanoseconds == .max)
    #expect((zero + (.seconds(9_223_372_036) + .milliseconds(999))).nanoseconds == .max)
  }

  // MARK: UniqueID

  @Test("3.1: a UUID is written and read as the text of RFC 9562")
  func uniqueID() throws {
    let text = "f81d4fae-7dec-41d0-a765-00a0c91e6bf6"
    let id = try #require(UniqueID(text))
    #expect(id.description == text && UniqueID(text.uppercased()) == id)
    #expect(UniqueID(pathKey: id.pathKey) == id)
    // One path to each key: a second one could evade a denial.
    #expect(UniqueID(pathKey: .text(text.uppercased())) == nil)
    for wrong in [
      "", "f81d4fae7dec41d0a76500a0c91e6bf6", text + "0", "g81d4fae-7dec-41d0-a765-00a0c91e6bf6",
      "+81d4fae-7dec-41d0-a765-00a0c91e6bf6", "f81d4fae-7dec-41d0-+765-00a0c91e6bf6",
      "f81d4fae-7dec-41d0-a765-00a0c91e6bf6-",
    ] {
      #expect(UniqueID(wrong) == nil, "\(wrong)")
    }
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<100 {
      let id = UniqueID(using: &generator)
      #expect(UniqueID(id.description) == id)
      #expect(Array(id.description)[14] == "4" && "89ab".contains(Array(id.description)[19]))
    }
  }

  @Test("3.1: a UUID is encoded as its text")
  func uniqueIDCoding() throws {
    let id = try #require(UniqueID("00000000-0000-0000-0000-00000000000a"))
    var encoder = CBOREncoder()
    id.encode(into: &encoder)
    #expect(encoder.bytes == [0x78, 36] + Array(id.description.utf8))
    let decoded = try CBORDecoder.read(encoder.bytes) { (decoder) throws(CBORError) in
      try UniqueID(from: &decoder, seed: .unseeded)
    }
    #expect(decoded == id)
  }

  @Test("EFF-03: the UUID of an effect is derived from its store and its number")
  func effectID() throws {
    var bench = Bench { .job($0.name) }
    bench.send("a")
    var other = Bench { .job($0.name) }
    other.send("a")
    let id = try #require(bench.id("a"))
    #expect(id == other.id("a") && UniqueID(id.description) == id.uuid)
    #expect(Array(id.description)[14] == "8")
  }
}
