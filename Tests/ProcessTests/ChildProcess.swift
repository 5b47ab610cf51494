import EventLoop
import Foundation
import Testing

/// A process that a test starts, with its output as lines. It is killed when the last reference is
/// gone.
///
/// Unchecked: everything that changes is behind `condition`.
final class ChildProcess: @unchecked Sendable {
  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  enum Ending: Equatable {
    case exit(Int32)
    case signal(Int32)

    /// The ending in a status of `waitpid`.
    init(_ status: Int32) {
      self = status & 0x7f == 0 ? .exit(status >> 8 & 0xff) : .signal(status & 0x7f)
    }
  }

  let name: String
  let pid: pid_t
  private let input: Int32
  private let condition = NSCondition()
  private var lines: [String] = []
  private var nextLine = 0
  private var ending: Ending?

  /// Start a program with nothing but these arguments; its output and errors are one stream.
  init(
    _ program: String, _ arguments: [String], environment: [String: String] = [:]
  ) throws {
    name = (program as NSString).lastPathComponent
    let (reader, writer) = try Self.pipe()
    let (theirInput, ourInput) = try Self.pipe()
    defer {
      close(writer)
      close(theirInput)
    }
    input = ourInput
    let arguments = Recordings.arguments(arguments, of: program)
    pid = try Self.spawn(program, arguments, environment, theirInput, writer)
    // The thread keeps no strong reference to the object: it runs until the process has ended.
    let thread = Thread { [weak self, pid] in
      Self.read(reader) { self?.said($0) }
      let ending = Self.wait(for: pid)
      self?.ended(ending)
    }
    thread.start()
  }

  deinit {
    signal(SIGKILL)
    close(input)
  }

  private func said(_ line: String) {
    condition.withLock {
      lines.append(line)
      condition.broadcast()
    }
  }

  private func ended(_ ending: Ending) {
    condition.withLock {
      self.ending = ending
      condition.broadcast()
    }
  }

  /// Code that opens descriptors which a child must not inherit, and cannot set that atomically,
  /// holds this lock.
  static let spawning = NSLock()

  /// A pair of sockets: unlike a pipe, it can be made so that no other child inherits it.
  private static func pipe() throws -> (reader: Int32, writer: Int32) {
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0
    else { throw Failure(description: "no pair of sockets") }
    return (ends[0], ends[1])
  }

  private static func spawn(
    _ program: String, _ arguments: [String], _ environment: [String: String], _ input: Int32,
    _ output: Int32
  ) throws -> pid_t {
    try spawn(program, arguments, environment) { actions in
      posix_spawn_file_actions_adddup2(&actions, input, 0)
      posix_spawn_file_actions_adddup2(&actions, output, 1)
      posix_spawn_file_actions_adddup2(&actions, output, 2)
    }
  }

  /// Start a program with its standard streams as `open` says.
  static func spawn(
    _ program: String, _ arguments: [String], _ environment: [String: String],
    asSessionLeader: Bool = false, _ open: (inout posix_spawn_file_actions_t) -> Void
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    open(&actions)
    // The threads that run tests block signals, and a child would begin with theirs blocked.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    // POSIX_SPAWN_SETSID, which Glibc's module map leaves out.
    let session: Int16 = asSessionLeader ? 0x80 : 0
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK) | session)
    let environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    var argv = ([program] + arguments).map { strdup($0) } + [nil]
    var envp = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for string in argv + envp { free(string) } }
    var pid: pid_t = 0
    let status = spawning.withLock {
      posix_spawn(&pid, program, &actions, &attributes, &argv, &envp)
    }
    guard status == 0 else {
      throw Failure(description: "cannot start \(program): \(String(cString: strerror(status)))")
    }
    return pid
  }

  private static func read(_ descriptor: Int32, _ onLine: (String) -> Void) {
    var rest: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = Foundation.read(descriptor, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      if count <= 0 { break }
      rest.append(contentsOf: buffer[..<count])
      while let end = rest.firstIndex(of: 10) {
        onLine(String(decoding: rest[..<end], as: UTF8.self))
        rest.removeSubrange(...end)
      }
    }
    if !rest.isEmpty { onLine(String(decoding: rest, as: UTF8.self)) }
    close(descriptor)
  }

  private static func wait(for pid: pid_t) -> Ending {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
    return Ending(status)
  }

  // MARK: What it is told

  /// Send a signal, unless the process has ended.
  func signal(_ number: Int32) {
    condition.lock()
    defer { condition.unlock() }
    if ending == nil { kill(pid, number) }
  }

  /// Write a line to its standard input.
  func write(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = bytes.withUnsafeBytes { send(input, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
  }

  // MARK: What it says

  /// All lines of output so far.
  var output: [String] {
    condition.lock()
    defer { condition.unlock() }
    return lines
  }

  /// Wait for the next line with this prefix, after the last one waited for.
  @discardableResult
  func line(_ prefix: String) async throws -> String {
    try await line(prefix, .behindTheLast) { $0.hasPrefix(prefix) }
  }

  /// Wait for the next line that contains this, after the last one waited for.
  @discardableResult
  func line(with part: String) async throws -> String {
    try await line(part, .behindTheLast) { $0.contains(part) }
  }

  /// Wait for lines that contain these, in any order, including earlier lines: for output whose
  /// time the process decides.
  func lines(with parts: String...) async throws {
    for part in parts { try await line(part, .anywhere) { $0.contains(part) } }
  }

  /// The lines among which to search.
  private enum Place {
    case behindTheLast
    case anywhere
  }

  @discardableResult
  private func line(
    _ what: String, _ place: Place, _ matches: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    try await blocking { [self] in
      let deadline = Date(timeIntervalSinceNow: 60)
      condition.lock()
      defer { condition.unlock() }
      while true {
        let searched = place == .anywhere ? lines[...] : lines[nextLine...]
        if let found = searched.firstIndex(where: matches) {
          nextLine = max(nextLine, found + 1)
          return lines[found]
        }
        if ending != nil || !condition.wait(until: deadline) {
          throw Failure(
            description: "\(name) did not say \"\(what)\" but: \(lines.suffix(20))")
        }
      }
    }
  }

  /// Wait until the process has ended.
  @discardableResult
  func end() async throws -> Ending {
    try await blocking { [self] in
      let deadline = Date(timeIntervalSinceNow: 60)
      condition.lock()
      defer { condition.unlock() }
      while true {
        if let ending { return ending }
        guard condition.wait(until: deadline) else {
          throw Failure(description: "\(name) does not end: \(lines.suffix(20))")
        }
      }
    }
  }

  /// Run a body. When the process ends before it, the body is cancelled, and this throws.
  func during(_ body: @escaping @Sendable () async throws -> Void) async throws {
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      defer { tasks.cancelAll() }
      tasks.addTask(operation: body)
      tasks.addTask { [self] in
        while condition.withLock({ ending == nil }) {
          try await LoopClock().sleep(for: .milliseconds(20))
        }
        // The message precedes the backtrace.
        throw Failure(
          description: "\(name) ended by itself: \(output.suffix(50).joined(separator: "\n"))")
      }
      try await tasks.next()
    }
  }

  /// Kill the process and wait until it is gone.
  func kill() async throws {
    signal(SIGKILL)
    try await end()
  }

  /// The bytes of memory that the process occupies.
  var residentBytes: Int { statm(1) }
  /// The bytes of its address space that are mapped, also where they occupy no memory.
  var mappedBytes: Int { statm(0) }

  private func statm(_ field: Int) -> Int { Self.statm(field, of: pid) }

  static func residentBytes(of pid: pid_t) -> Int { statm(1, of: pid) }

  private static func statm(_ field: Int, of pid: pid_t) -> Int {
    let fields = (try? String(contentsOfFile: "/proc/\(pid)/statm", encoding: .utf8))?
      .split(separator: " ")
    return (fields.flatMap { Int($0[field]) } ?? 0) * Int(getpagesize())
  }

  private static func kill(_ pid: pid_t, _ signal: Int32) { _ = Foundation.kill(pid, signal) }
  private func kill(_ pid: pid_t, _ signal: Int32) { Self.kill(pid, signal) }
}

/// Run blocking code on a thread that may be blocked.
func blocking<R: Sendable>(_ body: @escaping @Sendable () throws -> R) async throws -> R {
  try await withCheckedThrowingContinuation { continuation in
    let thread = Thread { continuation.resume(with: Result { try body() }) }
    thread.stackSize = 8 << 20
    thread.start()
  }
}

/// Wait until something holds.
func eventually(
  _ what: String, within limit: Duration = .seconds(30),
  _ condition: () async throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + limit
  while !(try await condition()) {
    guard ContinuousClock.now < deadline else {
      throw ChildProcess.Failure(description: "it did not happen in \(limit): \(what)")
    }
    try Task.checkCancellation()
    try await LoopClock().sleep(for: .milliseconds(5))
  }
}
