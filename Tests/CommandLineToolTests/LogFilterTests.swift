import ArgumentParser
import Testing
import Values

@testable import CommandLineTool

struct LogFilterTests {
  private static let records = [
    record(1, "set", "changed", 5, 0, "tool", "2026-11-25T10:00:00.000Z"),
    record(2, "todos.add", "rejected: limit: no", 6, 33, "", "2026-11-25T10:30:00.000Z"),
    record(3, "todos", "unchanged", 7, 33, "tool", "2026-11-25T11:00:00.000Z"),
    record(4, "todosd", "swallowed", nil, nil, "", "2026-11-26T00:00:00.000Z"),
  ].compactMap { $0 }

  private static func record(
    _ sequence: Int64, _ action: String, _ outcome: String, _ pid: Int64?, _ uid: Int64?,
    _ label: String, _ time: String
  ) -> LogRecord? {
    var members: TrieMap<String, Value> = [
      "sequence": .integer(sequence), "action": .text(action), "outcome": .text(outcome),
      "revision": .integer(sequence), "time": .text(time), "origin": "client 1",
    ]
    if let pid { members.updateValue(.integer(pid), forKey: "pid") }
    if let uid { members.updateValue(.integer(uid), forKey: "uid") }
    if !label.isEmpty { members.updateValue(.text(label), forKey: "label") }
    return LogRecord(.object(members))
  }

  @Test(
    arguments: [
      ([], [1, 2, 3, 4]), (["--action", "todos"], [2, 3]), (["--action", "set"], [1]),
      (["--action", "set", "--action", "todosd"], [1, 4]), (["--action", "todos.add"], [2]),
      (["--client", "tool"], [1, 3]), (["--client", "6"], [2]), (["--client", ""], []),
      (["--user", "33"], [2, 3]), (["--user", "root"], [1]),
      (["--user", "33", "--client", "tool"], [3]),
      (["--outcome", "rejected"], [2]),
      (["--outcome", "changed", "--outcome", "swallowed"], [1, 4]),
      (["--since", "2026-11-25T10:30:00Z"], [2, 3, 4]), (["--since", "2026-11-25T11"], [3, 4]),
      (["--since", "2026-11-26"], [4]),
    ] as [([String], [UInt64])])
  func `the log is filtered by all that is given`(arguments: [String], left: [UInt64]) throws {
    let command = try LockstepCommand.parseAsRoot(ArgumentOrder.arranged(["log"] + arguments))
    let filter = try #require(command as? Log).filter
    #expect(Self.records.filter(filter.passes).map(\.sequence) == left)
    #expect(filter.passesAll == arguments.isEmpty)
  }

  @Test func `a time before now is counted from now`() throws {
    let command = try LockstepCommand.parseAsRoot(["log", "--since", "60"])
    let filter = try #require(command as? Log).filter
    let ages = ["2020-11-25T10:00:00.000Z", "9999-11-25T10:00:00.000Z"].map { time in
      Self.record(1, "set", "changed", nil, nil, "", time).map(filter.passes)
    }
    #expect(ages == [false, true])
  }

  @Test(arguments: [
    (["--user", "nobody-there"], "there is no user of this name"),
    (["--since", "yesterday"], "a time like 2026-11-25T17:30:00Z"),
    (["--since", "-1"], "a number of seconds"), (["--outcome", "done"], "changed"),
  ])
  func `a filter that is none is explained`(arguments: [String], reason: String) {
    #expect {
      try LockstepCommand.parseAsRoot(ArgumentOrder.arranged(["log"] + arguments))
    } throws: { error in
      LockstepCommand.message(for: error).contains(reason)
    }
  }
}
