internal import Glibc

/// The file descriptors that the service manager passed to this process: listening sockets, and
/// descriptors that an earlier process of the service stored with it.
///
/// They come in any order; names tell them apart. The caller that takes a descriptor out must close
/// it. The others stay open until `closeRest`.
public struct Activation: Equatable, Sendable {
  /// A descriptor and its name; "unknown" if the manager gave no names.
  public struct Entry: Equatable, Sendable {
    public let name: String
    public let descriptor: Int32
  }

  /// The descriptors that have not been taken out yet, in the order in which they came.
  public private(set) var entries: [Entry]

  /// The most descriptors that a manager may pass; more are treated as a mistake.
  public static let limit = 65_536

  /// The descriptors that the manager passed to this process; none if it passed none or addressed
  /// another process.
  ///
  /// Sets close-on-exec on every descriptor, and removes the variables (`$LISTEN_PID`,
  /// `$LISTEN_FDS`, `$LISTEN_FDNAMES`) from the environment, whatever their values. Call it once,
  /// before other threads start. If it throws, all descriptors stay as they are.
  public static func take() throws(ActivationError) -> Activation {
    defer { for name in Environment.activationVariables { unsetenv(name) } }
    return try Activation(.process, pid: getpid(), first: 3)
  }

  /// Reads the variables for the process `pid`, whose descriptors begin with `first`.
  init(_ environment: Environment, pid: pid_t, first: Int32) throws(ActivationError) {
    let names = try Self.names(environment, pid: pid)
    entries = names.enumerated().map { Entry(name: $1, descriptor: first + Int32($0)) }
    // All are checked before any is changed.
    for entry in entries where fcntl(entry.descriptor, F_GETFD) < 0 {
      throw .notOpen(descriptor: entry.descriptor)
    }
    for entry in entries {
      // The only descriptor flag that exists.
      _ = fcntl(entry.descriptor, F_SETFD, FD_CLOEXEC)
    }
  }

  private static func names(
    _ environment: Environment, pid: pid_t
  ) throws(ActivationError) -> [String] {
    let addressee: pid_t?
    let count: Int?
    do throws(EnvironmentError) {
      addressee = try environment.number("LISTEN_PID")
      count = try environment.number("LISTEN_FDS")
    } catch {
      throw .environment(error)
    }
    guard let addressee, addressee == pid, let count, count > 0 else { return [] }
    guard count <= limit else { throw .tooMany(count: count) }
    guard let text = environment["LISTEN_FDNAMES"] else {
      // As sd_listen_fds_with_names(3) does. A single empty name looks the same as no names.
      return [String](repeating: "unknown", count: count)
    }
    let names = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard names.count == count else { throw .namesDiffer(names: names.count, descriptors: count) }
    if let name = names.first(where: { !DescriptorName.isValid($0) }) { throw .invalidName(name) }
    return names
  }

  /// Take out the descriptors of a name, in their order. The caller owns them from now on.
  public mutating func remove(named name: String) -> [Int32] {
    remove { $0 == name }.map(\.descriptor)
  }

  /// Take out the descriptors whose names match, in their order. The caller owns them from now on.
  public mutating func remove(where fits: (_ name: String) -> Bool) -> [Entry] {
    let taken = entries.filter { fits($0.name) }
    entries.removeAll { fits($0.name) }
    return taken
  }

  /// Close the descriptors that have not been taken out, and return them.
  ///
  /// A manager that stores one of them for the service keeps storing it: send it `fdStoreRemove`
  /// for each name.
  @discardableResult
  public mutating func closeRest() -> [Entry] {
    let rest = entries
    for entry in rest { close(entry.descriptor) }
    entries = []
    return rest
  }
}

/// Why the descriptors of a manager cannot be taken over.
public enum ActivationError: Error, Equatable, CustomStringConvertible {
  /// A variable is not a number.
  case environment(EnvironmentError)
  /// More than `Activation.limit` descriptors.
  case tooMany(count: Int)
  /// The number of names in `$LISTEN_FDNAMES` is not the number of descriptors.
  case namesDiffer(names: Int, descriptors: Int)
  /// A name that is not ASCII, has a control character, or is longer than 255 bytes.
  case invalidName(String)
  /// An announced descriptor is not open.
  case notOpen(descriptor: Int32)

  public var description: String {
    switch self {
    case .environment(let error): "\(error)"
    case .tooMany(let count):
      "$LISTEN_FDS is \(count): expected at most \(Activation.limit)"
    case .namesDiffer(let names, let descriptors):
      "$LISTEN_FDNAMES has \(names) names, and $LISTEN_FDS is \(descriptors)"
    case .invalidName(let name): "$LISTEN_FDNAMES has a name that cannot be: \"\(name)\""
    case .notOpen(let descriptor):
      "$LISTEN_FDS announces the descriptor \(descriptor), which is not open"
    }
  }
}
