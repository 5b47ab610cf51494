import Glibc
import Synchronization
import Testing

@testable import Systemd

@Suite struct ActivationTests {
  /// Calls `body` with the first of consecutive descriptors that a child would inherit. No other
  /// test uses them.
  private func withDescriptors(_ count: Int32, _ body: (Int32) throws -> Void) throws {
    let ends = try pipeEnds()
    // From high numbers down, away from the descriptors of concurrent tests, which get low numbers.
    let place = Self.places.wrappingAdd(1, ordering: .relaxed).newValue
    let most = min(max(sysconf(Int32(_SC_OPEN_MAX)), 1024), 65_536)
    let first = Int32(most) - 8 * place
    for number in first..<first + 8 { try #require(fcntl(number, F_GETFD) < 0) }
    for number in 0..<count { try #require(dup2(ends.numbers[0], first + number) >= 0) }
    defer { for number in 0..<count { close(first + number) } }
    try body(first)
  }

  private static let places = Atomic<Int32>(0)

  private func variables(_ count: String, names: String? = nil, pid: String = "7") -> Environment {
    var variables = ["LISTEN_PID": pid, "LISTEN_FDS": count]
    variables["LISTEN_FDNAMES"] = names
    return Environment(variables)
  }

  @Test func `descriptors are found by name`() throws {
    try withDescriptors(4) { first in
      var activation = try Activation(
        variables("4", names: "c1:lockstep:c2:lockstep"), pid: 7, first: first)
      #expect(activation.entries.map(\.name) == ["c1", "lockstep", "c2", "lockstep"])
      #expect(activation.entries.map(\.descriptor) == Array(first..<first + 4))
      #expect(activation.remove(named: "lockstep") == [first + 1, first + 3])
      #expect(activation.remove(named: "lockstep") == [])
      #expect(activation.remove(named: "state") == [])
      #expect(activation.remove { $0.hasPrefix("c") }.map(\.name) == ["c1", "c2"])
      #expect(activation.entries.isEmpty)
    }
  }

  @Test func `no child inherits the descriptors`() throws {
    try withDescriptors(2) { first in
      for number in first..<first + 2 { #expect(fcntl(number, F_GETFD) == 0) }
      _ = try Activation(variables("2"), pid: 7, first: first)
      for number in first..<first + 2 { #expect(fcntl(number, F_GETFD) == FD_CLOEXEC) }
    }
  }

  @Test func `descriptors that are not taken can be closed`() throws {
    try withDescriptors(3) { first in
      var activation = try Activation(variables("3", names: "a:b:c"), pid: 7, first: first)
      #expect(activation.remove(named: "b") == [first + 1])
      #expect(activation.closeRest().map(\.name) == ["a", "c"])
      #expect(activation.closeRest().isEmpty)
      #expect(fcntl(first, F_GETFD) == -1)
      #expect(fcntl(first + 1, F_GETFD) >= 0)
      #expect(fcntl(first + 2, F_GETFD) == -1)
    }
  }

  @Test func `without names all descriptors are unknown`() throws {
    try withDescriptors(2) { first in
      let activation = try Activation(variables("2"), pid: 7, first: first)
      #expect(activation.entries.map(\.name) == ["unknown", "unknown"])
    }
  }

  @Test func `names may be empty and contain any printable character except a colon`() throws {
    try withDescriptors(3) { first in
      let activation = try Activation(
        variables("3", names: ":a b=/~:" + String(repeating: "x", count: 255)), pid: 7,
        first: first)
      #expect(activation.entries.map(\.name).prefix(2) == ["", "a b=/~"])
    }
  }

  @Test(arguments: [
    [:], ["LISTEN_FDS": "1"], ["LISTEN_PID": "7"], ["LISTEN_PID": "8", "LISTEN_FDS": "1"],
    ["LISTEN_PID": "7", "LISTEN_FDS": "0"], ["LISTEN_PID": "7", "LISTEN_FDS": ""],
    ["LISTEN_PID": "8", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "a:b"],
    ["LISTEN_FDNAMES": "a"],
  ])
  func `without variables for this process there are no descriptors`(
    variables: [String: String]
  ) throws {
    #expect(try Activation(Environment(variables), pid: 7, first: 3).entries.isEmpty)
  }

  @Test(arguments: [
    "-1", "+1", " 1", "1 ", "1\n", "0x1", "1.0", "one", "１", "9223372036854775808",
    "99999999999999999999999999", "1:2", "\0",
  ])
  func `a count that is not a number is an error`(count: String) throws {
    let error = #expect(throws: ActivationError.self) {
      _ = try Activation(variables(count), pid: 7, first: 3)
    }
    guard case .environment(let reason) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(reason.variable == "LISTEN_FDS")
    #expect(reason.value == count)
  }

  @Test(arguments: ["-7", "+7", " 7", "7x", "2147483648", "99999999999999999999"])
  func `a pid that is not a number is an error`(pid: String) throws {
    #expect(throws: ActivationError.self) {
      _ = try Activation(variables("1", pid: pid), pid: 7, first: 3)
    }
  }

  @Test(arguments: [65_537, 2_147_483_647, Int.max])
  func `more descriptors than a manager can pass is an error`(count: Int) throws {
    #expect(throws: ActivationError.tooMany(count: count)) {
      _ = try Activation(variables("\(count)"), pid: 7, first: 3)
    }
  }

  @Test func `wrong names are an error, and change no descriptor`() throws {
    try withDescriptors(2) { first in
      for (names, error) in [
        ("a", .namesDiffer(names: 1, descriptors: 2)),
        ("a:b:c", .namesDiffer(names: 3, descriptors: 2)),
        (":::", .namesDiffer(names: 4, descriptors: 2)),
        ("a:é", .invalidName("é")), ("a\n:b", .invalidName("a\n")),
        (
          String(repeating: "x", count: 256) + ":b",
          .invalidName(String(repeating: "x", count: 256))
        ),
      ] as [(String, ActivationError)] {
        #expect(throws: error) {
          _ = try Activation(variables("2", names: names), pid: 7, first: first)
        }
      }
      #expect(throws: ActivationError.notOpen(descriptor: first + 2)) {
        _ = try Activation(variables("3"), pid: 7, first: first)
      }
      for number in first..<first + 2 { #expect(fcntl(number, F_GETFD) == 0) }
    }
  }

  @Test func `this process has no descriptors from a manager`() throws {
    #expect(try Activation.take().entries.isEmpty)
  }
}
