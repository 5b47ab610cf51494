import Access

/// A policy with what is known of the file that it was read from.
struct LoadedPolicy: Sendable {
  let file: String
  let policy: Policy
  /// What an administrator should know: names that are nobody's, and writes without effect.
  let notes: [PolicyError]
  /// What the file says.
  let bytes: [UInt8]
  /// The numbers of the accounts that it names.
  let users: [String: UInt64]
  let groups: [String: UInt64]
}
