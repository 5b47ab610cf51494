import Access

/// A policy, with information about the file that it was read from.
struct LoadedPolicy: Sendable {
  let file: String
  let policy: Policy
  /// Notes for the administrator: names without an account, and writes without effect.
  let notes: [PolicyError]
  /// The contents of the file.
  let bytes: [UInt8]
  /// The numbers of the accounts that it names.
  let users: [String: UInt64]
  let groups: [String: UInt64]
}
