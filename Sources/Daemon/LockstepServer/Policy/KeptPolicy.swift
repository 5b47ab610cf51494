import DaemonCore
import Glibc
import Journal
import Lockstep

// A running daemon keeps its policy when the file becomes invalid. Its successor has only the file.
// So the policy that was last in force is stored beside the state, with the numbers of its
// accounts: a missing account may be the reason that the file cannot be read.

/// The policy that was last in force, for a process that continues another one.
enum KeptPolicy {
  static func path(in directory: String) -> String { directory + "/policy-in-force.yaml" }

  /// Store the policy in force, in place of the one before.
  static func keep(_ loaded: LoadedPolicy, in directory: String) throws(JournalError) {
    try OwnFile.replace(path(in: directory), by: bytes(of: loaded))
  }

  /// Remove the stored policy: the policy file is gone, and its rules must not come back.
  static func forget(in directory: String) { unlink(path(in: directory)) }

  /// Read the stored policy. Throws when there is none that can be used.
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

  /// Separates the text of the policy file from the accounts, which are comments to YAML.
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
