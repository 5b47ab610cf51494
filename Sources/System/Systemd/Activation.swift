internal import Glibc

/// The descriptors that a manager started this process with: listening sockets, and what an earlier
/// process of the service had it keep.
///
/// They come in any order; names tell them apart. What is taken out is the taker's to close. Nobody
/// closes the others: `closeRest` does.
public struct Activation: Equatable, Sendable {
  /// A descriptor and the name that it was given; "unknown" if the manager said no names.
  public struct Entry: Equatable, Sendable {
    public let name: String
    public let descriptor: Int32
  }

  /// What has not been taken out yet, in the order in which it came.
  public private(set) var entries: [Entry]

  /// The most descriptors that a manager hands over: more is taken for a mistake.
  public static let limit = 65_536

  /// What the manager gave to this process: nothing, if it gave nothing or meant another process.
  ///
  /// Makes every descriptor one that no child inherits, and takes the variables (`$LISTEN_PID`,
  /// `$LISTEN_FDS`, `$LISTEN_FDNAMES`) out of the environment, whatever they were. Call it once,
  /// before other threads begin. If it throws, all descriptors stay as they are.
  public static func take() throws(ActivationError) -> Activation {
    defer { for name in Environment.activationVariables { unsetenv(name) } }
    return try Activation(.process, pid: getpid(), first: 3)
  }

  /// Reads the variables for the process `pid`, whose descriptors begin with `first`.
  init(_ environment: Environment, pid: pid_t, first: Int32) throws(ActivationError) {
    let names = try Self.names(environment, pid: pid)
    entries = names.enumerated().map { Entry(name: $1, descriptor: first + Int32($0)) }
    // All of them are looked at before one is changed.
    for entry in entries where fcntl(entry.descriptor, F_GETFD) < 0 {
      throw .notOpen(descriptor: entry.descriptor)
    }
    for entry in entries {
      // The only flag that there is.
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
      // So does sd_listen_fds_with_names(3). A single empty name looks the same.
      return [String](repeating: "unknown", count: count)
    }
    let names = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard names.count == count else { throw .namesDiffer(names: names.count, descriptors: count) }
    if let name = names.first(where: { !DescriptorName.isValid($0) }) { throw .invalidName(name) }
    return names
  }

  /// Take out the descriptors of a name, in their order. From now on they are the caller's.
  public mutating func remove(named name: String) -> [Int32] {
    remove { $0 == name }.map(\.descriptor)
  }

  /// Take out the descriptors whose names fit, in their order. From now on they are the caller's.
  public mutating func remove(where fits: (_ name: String) -> Bool) -> [Entry] {
    let taken = entries.filter { fits($0.name) }
    entries.removeAll { fits($0.name) }
    return taken
  }

  /// Close what nobody has taken out, and return it.
  ///
  /// A manager that keeps one of them for the service goes on to keep it: send it `fdStoreRemove`
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
  /// A variable is no number.
  case environment(EnvironmentError)
  /// More than `Activation.limit` descriptors.
  case tooMany(count: Int)
  /// `$LISTEN_FDNAMES` has not as many names as there are descriptors.
  case namesDiffer(names: Int, descriptors: Int)
  /// A name that is not ASCII, has a control character, or is longer than 255 bytes.
  case invalidName(String)
  /// A descriptor that was announced is not there.
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
