public import Access
import Files
import Glibc
public import Lockstep
import SystemPackage
import Values

/// A policy that a person writes, as YAML:
///
///     version: 1
///     rules:
///       - users: [alice, 1000]
///         groups: [operators]
///         connect: true
///         read: [/]
///         deny-read: [/secrets, /users/*/password]
///         act: ["*"]
///         deny-act: ["admin.*"]
///       - everyone: true
///         connect: true
///         read: [/public]
///
/// A rule applies to the users and the members of the groups that it lists, by name or number, or
/// to everyone. A client may do what all rules that apply to it grant together, less what any of
/// them denies.
///
/// - `connect`: may connect. `administer`: may ask about other clients and about actions, and
///   cancel effects. `false` is a denial, as `deny-` is.
/// - `read`, `deny-read`: what may be seen. A path is a JSON Pointer by the names of fields, with
///   all below it; `*` is any one key, and `~2` in a key is a literal star.
/// - `act`, `deny-act`: actions by name; `todos` and `todos.*` are all of a child, `*` is all.
/// - `write`, `deny-write`: where actions that name paths may change something. Without `write`, a
///   rule with `act` lets a client write what it may read.
public enum PolicyFile {
  /// A policy has some lines; a larger file is not a policy.
  static let sizeLimit = 1 << 20

  /// Read the policy of a feature's daemon. Nothing is cached: a caller that reads a file again has
  /// either the old policy and an error, or the new one. Blocks, because names are looked up.
  public static func read<F: Feature>(
    _ path: String, for feature: F.Type
  ) throws(PolicyError) -> Policy {
    try load(path, for: feature).policy
  }

  /// Read a policy, with the notes on it.
  static func load<F: Feature>(
    _ path: String, for feature: F.Type
  ) throws(PolicyError) -> LoadedPolicy {
    try reader(of: path, for: feature).load(try bytes(of: path))
  }

  static func reader<F: Feature>(of path: String, for feature: F.Type) -> PolicyReader {
    PolicyReader(file: path, schema: F.schema, namesPaths: F.Action.self is any PathNaming.Type)
  }

  /// The bytes of a file that only root and the daemon's user can have written: one of them must
  /// own it, and no other user may write to it.
  static func bytes(
    of path: String, limit: Int = sizeLimit
  ) throws(PolicyError) -> [UInt8] {
    // Without `O_NONBLOCK`, opening a pipe would wait for a writer.
    let file: FileDescriptor
    do throws(Errno) { file = try .opening(path, .readOnly, .nonBlocking) } catch {
      throw failure(path, error)
    }
    defer { file.closeQuietly() }
    var status = stat()
    guard fstat(file.rawValue, &status) == 0 else { throw failure(path, Errno(rawValue: errno)) }
    try check(status, path, daemon: geteuid())
    let bytes: [UInt8]?
    do throws(Errno) { bytes = try file.readToEnd(limit: limit) } catch {
      throw failure(path, error)
    }
    guard let bytes else { throw PolicyError(path, nil, "it has more than \(limit) bytes") }
    return bytes
  }

  static func check(_ status: stat, _ path: String, daemon: uid_t) throws(PolicyError) {
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw PolicyError(path, nil, "this is not a file")
    }
    guard status.st_uid == 0 || status.st_uid == daemon else {
      throw PolicyError(
        path, nil,
        "it belongs to user \(status.st_uid), who could change it: run `chown \(daemon) \(path)`")
    }
    guard status.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
      throw PolicyError(
        path, nil,
        "others than its owner may write to it (mode \(String(status.st_mode & 0o777, radix: 8)))"
          + ": run `chmod go-w \(path)`")
    }
  }

  private static func failure(_ path: String, _ error: Errno) -> PolicyError {
    let remedy =
      switch error {
      case .noSuchFileOrDirectory, .notDirectory:
        ". Make it (lockstepd.service(8) says what is in it), or give another path with --policy"
      case .permissionDenied, .notPermitted:
        ". Let user \(geteuid()) read it (chown, chmod), and search its directory"
      default: ""
      }
    return PolicyError(path, nil, "it cannot be read: \(error)\(remedy)")
  }
}
