import CBOR
import CarsFeature
import Foundation
import Lockstep
import LockstepClient
import TestClient
import Testing
import Values
import Wire

/// `carsd`, its client, and the stock command line.
@Suite("Cars", .enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(2)))
struct CarsProcessTests {
  private static let cars = ["BMW 520d", "HYUNDAE AVANTE", "KIA K5", "Mercedes-Benz E-class"]

  /// The cars in a line of the client, sorted.
  private func names(in line: String) -> [String] {
    guard let colon = line.firstIndex(of: ":") else { return [] }
    return line[colon...].dropFirst(2).split(separator: ", ").map(String.init).sorted()
  }

  @Test("RKT-13, RKT-16: after the first state come exactly three, two seconds later")
  func states() async throws {
    try await withExample("carsd") { served in
      let watch = try served.start("cars", "watch")
      defer { watch.signal(SIGKILL) }
      try await watch.line("ready: no cars")
      #expect(try await served.run("cars", "reload").status == .exit(0))
      try await watch.line("loading: no cars")
      let loaded = try await watch.line("loading: ")
      #expect(names(in: loaded) == Self.cars)
      let ready = try await watch.line("ready: ")
      #expect(names(in: ready) == Self.cars)
      #expect(watch.output.count == 4)

      // Measured by the daemon's clock, in whole milliseconds.
      let mutations = try await served.log().filter { $0["parent"] != nil }
      let times = try mutations.map { try time($0) }
      #expect(times.count == 3)
      #expect(times[1] - times[0] > 1.998)
      #expect(times[1] - times[0] < 20)
      #expect(mutations.map { $0["revision"] as? Int } == [1, 2, 3])
    }
  }

  private func time(_ record: [String: any Sendable]) throws -> TimeInterval {
    let text = try #require(record["time"] as? String)
    let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    return try style.parse(text).timeIntervalSince1970
  }

  @Test("RKT-08: two reloads run concurrently")
  func interleaving() async throws {
    try await withExample("carsd") { _ in
      ["--delay-ms", "300"]
    } _: { served in
      let mirror = try await MirrorStore<Cars>.connect(.init(socket: served.socket))
      async let first = mirror.send(.reloadCarList)
      async let second = mirror.send(.reloadCarList)
      #expect(try await [first.outcome, second.outcome] == [.accepted, .accepted])
      try await eventually("both are done") { try await served.log().count == 8 }
      let parents = try await served.log().compactMap { $0["parent"] as? Int }
      let order = parents.map { $0 == parents[0] ? "a" : "b" }
      #expect(order.filter { $0 == "a" }.count == 3)
      let beginOfSecond = try #require(order.firstIndex(of: "b"))
      let endOfFirst = try #require(order.lastIndex(of: "a"))
      #expect(beginOfSecond < endOfFirst)
      await mirror.connection.finish()
    }
  }

  @Test("RKT-07: no byte on the socket contains a mutation")
  func hiddenMutation() async throws {
    try await withExample("carsd") { _ in
      ["--delay-ms", "1"]
    } _: { served in
      let proxy = try ForwardingProxy(at: served.folder + "/proxy", to: served.socket)
      defer { proxy.close() }
      let other = ServedExample(folder: served.folder, socket: proxy.path, daemon: served.daemon)
      let watch = try other.start("cars", "watch")
      defer { watch.signal(SIGKILL) }
      try await watch.line("ready: no cars")
      #expect(try await other.lockstep("send", "reloadCarList").status == .exit(0))
      try await watch.line("ready: ")
      #expect(try await other.lockstep("schema").status == .exit(0))
      #expect(try await other.lockstep("log").lines.count == 4)
      for seen in ["reloadCarList", "BMW", "AVANTE"] { #expect(proxy.saw(seen)) }
      for hidden in ["Mutation", "requestCarList", "setLoading"] { #expect(!proxy.saw(hidden)) }
    }
  }

  @Test("RKT-08: an action is acknowledged at once, however long its mutations take")
  func accepted() async throws {
    try await withExample("carsd") { _ in
      ["--delay-ms", "3600000"]
    } _: { served in
      let mirror = try await MirrorStore<Cars>.connect(.init(socket: served.socket))
      #expect(try await mirror.send(.reloadCarList).outcome == .accepted)
      try await eventually("it is loading") { mirror.loading }
      #expect(mirror.carList.isEmpty)
      #expect(try await served.effects() == ["reloadCarList"])
      await mirror.connection.finish()
    }
  }

  @Test("RKT-08: a provider that fails is reported, and the next reload works")
  func failing() async throws {
    try await withExample("carsd") { _ in
      ["--delay-ms", "1", "--failures", "1"]
    } _: { served in
      let watch = try served.start("cars", "watch")
      defer { watch.signal(SIGKILL) }
      #expect(try await served.run("cars", "reload").status == .exit(0))
      try await served.daemon.line(with: "NoCars")
      #expect(try await served.run("cars", "reload").status == .exit(0))
      let loaded = try await watch.line(with: "BMW")
      #expect(names(in: loaded) == Self.cars)
      try await watch.line("ready: ")
    }
  }

  @Test("RKT-17: a row can be read, and an absent row is no car")
  func show() async throws {
    try await withExample("carsd") { _ in
      ["--delay-ms", "1"]
    } _: { served in
      let empty = try await served.run("cars", "show", "0")
      #expect(empty.status == .exit(0))
      #expect(empty.lines == ["There is no row 0: the list has 0, from row 0."])
      let watch = try served.start("cars", "watch")
      defer { watch.signal(SIGKILL) }
      try await watch.line("ready: no cars")
      #expect(try await served.run("cars", "reload").status == .exit(0))
      try await watch.line("ready: ")
      var shown: [String] = []
      for row in 0..<4 { shown += try await served.run("cars", "show", "\(row)").lines }
      #expect(shown.sorted() == Self.cars)
      for row in ["4", "1000000"] {
        let outside = try await served.run("cars", "show", row)
        #expect(outside.status == .exit(0))
        #expect(outside.lines == ["There is no row \(row): the list has 4, from row 0."])
      }
    }
  }

  @Test("RKT-01, RKT-02: a view sends its user's action alone, and the reactor makes the state")
  func cycle() async throws {
    try await withExample("carsd") { _ in
      ["--delay-ms", "1"]
    } _: { served in
      let proxy = try ForwardingProxy(at: served.folder + "/proxy", to: served.socket)
      defer { proxy.close() }
      let behind = ServedExample(folder: served.folder, socket: proxy.path, daemon: served.daemon)
      let view = try behind.start("cars", "view")
      defer { view.signal(SIGKILL) }
      try await view.line("-- press return to load anew --")
      view.write("")
      try await eventually("all rows are shown") {
        Self.cars.allSatisfy { car in view.output.contains { $0.hasSuffix(car) } }
      }
      let sent = try messages(in: proxy.fromClients)
      let actions = sent.compactMap { message -> [UInt8]? in
        if case .action(_, _, let payload) = message { payload } else { nil }
      }
      var expected = CBOREncoder()
      Cars.Action.reloadCarList.encode(into: &expected)
      #expect(actions == [expected.bytes])
      for message in sent {
        switch message {
        case .hello, .subscribe, .action, .ping, .digestRequest: break
        default: Issue.record("a view sent \(message)")
        }
      }
      // The user's action led to three mutations, and each of them to a visible state.
      let log = try await served.log()
      #expect(log.map { $0["parent"] as? Int } == [nil, 1, 1, 1])
      #expect(log.dropFirst().map { $0["revision"] as? Int } == [1, 2, 3])
    }
  }

  /// The messages in the bytes of clients.
  private func messages(in bytes: [UInt8]) throws -> [ClientMessage] {
    var frames = FrameDecoder(limit: 1 << 20)
    var messages: [ClientMessage] = []
    try bytes.withUnsafeBytes { bytes in
      try frames.receiveAll(bytes) { item throws(WireError) in
        messages.append(try ClientMessage(item))
      }
    }
    return messages
  }

  @Test("RKT-20: a client can neither send a mutation nor name one")
  func noMutation() async throws {
    try await withExample("carsd") { _ in
      ["--delay-ms", "1"]
    } _: { served in
      let client = try RawClient(path: served.socket)
      try client.greet()
      var mutation = CBOREncoder()
      ReactorAction<Cars>.mutation(.setLoading(loading: true)).encode(into: &mutation)
      try client.send(.action(number: 1, .applied, payload: mutation.bytes))
      guard case .rejected(let rejection) = try client.acknowledgement().outcome else {
        Issue.record("a mutation was taken")
        return
      }
      #expect(rejection.message.contains("malformed action"))
      let named = try await served.lockstep("send", "setLoading", "true")
      #expect(named.status != .exit(0))
      #expect(try await served.lockstep("get", "/loading").lines == ["false"])
      // An action goes through the reactor, and its mutations make the state.
      #expect(try await served.lockstep("send", "reloadCarList").status == .exit(0))
      try await eventually("its mutations have come") {
        try await served.log().count { $0["parent"] != nil } == 3
      }
      #expect(try await served.lockstep("get", "/loading").lines == ["false"])
    }
  }

  @Test("RKT-14, RKT-15, RKT-16: a view is bound by itself, sends a pull to refresh, shows rows")
  func view() async throws {
    try await withExample("carsd") { _ in
      ["--delay-ms", "1"]
    } _: { served in
      let view = try served.start("cars", "view")
      defer { view.signal(SIGKILL) }
      // The first state is not loading either.
      try await view.line("-- press return to load anew --")
      view.write("")
      try await eventually("all rows are shown") {
        Self.cars.allSatisfy { car in view.output.contains { $0.hasSuffix(car) } }
      }
      #expect(try await served.log().first?["action"] as? String == "reloadCarList")
    }
  }
}
