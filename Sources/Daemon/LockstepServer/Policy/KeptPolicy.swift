import DaemonCore
import Glibc
import Journal
import Lockstep

// A daemon that runs goes on under its policy when the file is spoilt. The process that follows it
// has only the file. So what was in force last is kept beside the state, with the numbers that its
// names had: the account that is missing may be the reason why the file cannot be read.

/// The policy that was in force last, for a process that goes on where another one was.
enum KeptPolicy {
  static func path(in directory: String) -> String { directory + "/policy-in-force.yaml" }

  /// Keep a policy that is in force, in the place of the one before.
  static func keep(_ loaded: LoadedPolicy, in directory: String) throws(JournalError) {
    try OwnFile.replace(path(in: directory), by: bytes(of: loaded))
  }

  /// There is no policy file any more, and what it said must not come back.
  static func forget(in directory: String) { unlink(path(in: directory)) }

  /// The policy that was kept. Throws when there is none that can be used.
  static func read<F: Feature>(
    in directory: String, for feature: F.Type
  ) throws(PolicyError) -> LoadedPolicy {
    let path = path(in: directory)
    let bytes = try PolicyFile.bytes(of: path, limit: 2 * PolicyFile.sizeLimit)
    let (text, accounts) = split(bytes)
    var reader = PolicyFile.reader(of: path, for: feature)
    reader.accounts = accounts
    return try reader.load(text)
  }

  // MARK: The file

  /// Stands between what the policy file said and the accounts, which are comments to YAML.
  private static let mark = Array(
    "\n# What was in force last: lockstepd keeps it for its next process. The accounts:\n".utf8)
  private static let prefix = "# "

  private static func bytes(of loaded: LoadedPolicy) -> [UInt8] {
    func lines(_ kind: String, _ accounts: [String: UInt64]) -> [String] {
      accounts.sorted { $0.key < $1.key }.map { "\(prefix)\(kind) \($0.value) \($0.key)\n" }
    }
    let accounts = lines("user", loaded.users) + lines("group", loaded.groups)
    return loaded.bytes + mark + accounts.flatMap(\.utf8)
  }

  private static func split(_ bytes: [UInt8]) -> (text: [UInt8], accounts: Accounts) {
    var (users, groups): ([String: UInt64], [String: UInt64]) = ([:], [:])
    guard let place = lastPlace(of: mark, in: bytes) else { return (bytes, .none) }
    let lines = String(decoding: bytes[(place + mark.count)...], as: UTF8.self)
    for line in lines.split(separator: "\n") where line.hasPrefix(prefix) {
      let words = line.dropFirst(prefix.count).split(separator: " ", maxSplits: 2)
      guard words.count == 3, let number = UInt64(words[1]) else { continue }
      if words[0] == "user" { users[String(words[2])] = number }
      if words[0] == "group" { groups[String(words[2])] = number }
    }
    let accounts = Accounts(
      user: { [users] in users[$0].map { .found($0) } ?? .unknown },
      group: { [groups] in groups[$0].map { .found($0) } ?? .unknown })
    return (Array(bytes[..<place]), accounts)
  }

  private static func lastPlace(of part: [UInt8], in bytes: [UInt8]) -> Int? {
    guard bytes.count >= part.count else { return nil }
    return (0...(bytes.count - part.count)).last { bytes[$0...].starts(with: part) }
  }
}
