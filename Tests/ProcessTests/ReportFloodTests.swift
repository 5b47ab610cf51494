import CBOR
import Documents
import Foundation
import LockstepClient
import Synchronization
import TestClient
import Testing
import Values
import Wire

/// Clients that send many queries delay the others by at most 20 ms.
@Suite(.enabled(if: Binaries.isThere, Binaries.comment), .timeLimit(.minutes(3)), .serialized)
struct ReportFloodTests {
  struct Flood: CustomTestStringConvertible, Sendable {
    var name: String
    var arguments: [String] = []
    var count: Int
    var connections = 1
    var isRead = true
    /// The entries of a map in the state, at `/m`.
    var entries = 0
    var testDescription: String {
      let query = ([name] + arguments).joined(separator: " ")
      return "\(connections) × \(count) × \(query)\(isRead ? "" : ", unread")"
    }

    /// The queries and a goodbye, which the daemon answers after the reports.
    var bytes: [UInt8] {
      var encoder = CBOREncoder()
      for number in 1...UInt64(count) {
        Frame.append(to: &encoder) {
          ClientMessage.query(number: number, name, arguments: arguments).encode(into: &$0)
        }
      }
      Frame.append(to: &encoder) {
        ClientMessage.goodbye(.done, "all is asked").encode(into: &$0)
      }
      return encoder.bytes
    }
  }

  static let floods = [
    Flood(name: "log", arguments: ["2048"], count: 300), Flood(name: "limits", count: 16_000),
    Flood(name: "log", count: 16_000),
    Flood(name: "log", count: 16_000, connections: 7, isRead: false),
    Flood(name: "parts", arguments: ["/m"], count: 1000, connections: 7, entries: 300_000),
  ]

  @Test(arguments: floods) func `a flood of queries does not delay other clients`(
    _ flood: Flood
  ) async throws {
    try await withDaemon { served in
      try fillLog(served)
      if flood.entries > 0 {
        let mirror = try await served.mirror(of: ["none"])
        var entries = TrieMap<String, Value>()
        for number in 0..<flood.entries { entries.updateValue(.bool(true), forKey: "k\(number)") }
        try await mirror.send(DocumentAction.set(["m"], .object(entries)))
        mirror.connection.close()
      }
      let limit = try limit("unsentBytesPerUser", of: served)
      let before = served.daemon.residentBytes
      var longest: [Duration] = []
      // A busy machine may delay any client, but not every time.
      while longest.count < 5, longest.last.map({ $0 > .milliseconds(20) }) ?? true {
        let client = try served.raw()
        defer { client.close() }
        try client.greet()
        let asking = try Asking(flood, served)
        defer { asking.stop() }
        longest.append(try longestWait(client) { !flood.isRead || asking.isAnswered })
      }
      print("\(flood.testDescription): others wait at most \(longest)")
      #expect(longest.last.map { $0 <= .milliseconds(20) } == true, "\(longest)")
      let grown = served.daemon.residentBytes - before
      #expect(grown < limit + 32 << 20, "the daemon grew by \(grown >> 20) MiB")
    }
  }

  private func fillLog(_ served: Served) throws {
    let client = try served.raw()
    defer { client.close() }
    try client.greet()
    for number in 1...2500 as ClosedRange<UInt64> {
      let action = DocumentAction.set(["n"], .unsigned(number))
      try client.send(.action(number: number, .applied, payload: action.payload))
      // A client that writes without reading would be paused.
      _ = try client.acknowledgements(through: number)
    }
  }

  private func limit(_ name: String, of served: Served) throws -> Int {
    let client = try served.raw()
    defer { client.close() }
    try client.greet()
    try client.send(.query(number: 1, "limits", arguments: []))
    while let message = try client.receive() {
      if case .report(number: 1, let report, hasMore: _) = message {
        guard case .integer(let value)? = report[name] else { break }
        return Int(value)
      }
    }
    Issue.record("there is no limit \(name)")
    return 0
  }

  /// The longest of at least 500 round trips.
  private func longestWait(_ client: RawClient, until isOver: () -> Bool) throws -> Duration {
    let payload = DocumentAction.increment(["other"], by: 1).payload
    let clock = ContinuousClock()
    var longest = Duration.zero
    var number: UInt64 = 0
    while number < 500 || !isOver() {
      number += 1
      let start = clock.now
      try client.send(.action(number: number, .applied, payload: payload))
      _ = try client.acknowledgement()
      longest = max(longest, start.duration(to: clock.now))
    }
    return longest
  }

  /// Connections that send queries as fast as the daemon reads.
  private final class Asking: Sendable {
    private struct State: Sendable {
      var open: Int
      var isOver = false
    }
    private let state: Mutex<State>

    init(_ flood: Flood, _ served: Served) throws {
      state = Mutex(State(open: flood.connections))
      let bytes = flood.bytes
      for _ in 0..<flood.connections {
        let path = served.socket
        Thread { [self] in
          if let client = try? RawClient(path: path), (try? client.greet(label: "flood")) != nil {
            ask(client, bytes, isRead: flood.isRead)
            client.close()
          }
          state.withLock { $0.open -= 1 }
        }.start()
      }
    }

    /// Whether the daemon has closed all connections, after the answers.
    var isAnswered: Bool { state.withLock { $0.open == 0 } }

    func stop() { state.withLock { $0.isOver = true } }

    private func ask(_ client: RawClient, _ bytes: [UInt8], isRead: Bool) {
      var rest = bytes[...]
      var buffer = [UInt8](repeating: 0, count: 1 << 16)
      while !state.withLock({ $0.isOver }) {
        let events = (rest.isEmpty ? 0 : POLLOUT) | (isRead ? POLLIN : 0)
        var poll = pollfd(fd: client.descriptor, events: Int16(events), revents: 0)
        guard Foundation.poll(&poll, 1, 20) > 0 else { continue }
        if isRead, poll.revents & Int16(POLLIN | POLLHUP) != 0 {
          // The answers are discarded.
          if recv(client.descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT)) == 0 { return }
        }
        if poll.revents & Int16(POLLOUT) != 0 {
          let taken = client.sendSome(rest)
          if taken < 0 { return }
          rest = rest.dropFirst(taken)
        }
      }
    }
  }
}
