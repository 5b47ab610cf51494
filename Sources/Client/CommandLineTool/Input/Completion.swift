import ArgumentParser
import EventLoop
import Glibc
import LockstepClient
import Schemas
import SocketPaths
import Synchronization
import Values
import Wire

/// Completes arguments in a shell with what the daemon has. Without an answer within a second, or
/// with an error, there is nothing to complete: a shell has no place for messages.
enum Completion {
  /// Paths of the state, one level at a time.
  static let path = kind { client, beginning in try await client.paths(beginning) }
  /// Names of actions.
  static let action = kind { client, _ in client.connection.schema?.actionCases.keys.sorted() ?? []
  }
  /// Keys and identifiers of effects.
  static let effect = kind { client, _ in
    guard case .array(let effects) = try await client.report(.effects) else { return [] }
    return effects.flatMap { effect in
      ["key", "id"].compactMap { effect.child(.text($0))?.cell }
    }
  }

  private static func kind(
    _ candidates: @escaping @Sendable (Client, String) async throws -> [String]
  ) -> CompletionKind {
    .custom { words, index, beginning in
      let typed =
        beginning.first == "'" || beginning.first == "\"" ? beginning.dropFirst() : beginning[...]
      let socket = socket(in: words)
      return answer { try await with(socket) { try await candidates($0, String(typed)) } }
        .filter { $0.utf8.starts(with: typed.utf8) }
    }
  }

  /// Wait for the candidates. The parser asks for them outside of every task, on a thread that may
  /// wait (`LockstepProgram.main`).
  private static func answer(
    _ candidates: @escaping @Sendable () async throws -> [String]
  ) -> [String] {
    let reply = Reply()
    Task.detached { reply.give((try? await candidates()) ?? []) }
    return reply.wait(seconds: 1)
  }

  private static func with(
    _ socket: String, _ body: (Client) async throws -> [String]
  ) async throws -> [String] {
    var settings = Connection.Options(socket: socket, label: "lockstep completion")
    settings.reconnects = false
    settings.digestInterval = nil
    settings.schemaUse = .names
    let client = Client(connection: try await Connection.connect(settings), socket: socket)
    let found = try await body(client)
    await client.connection.finish()
    return found
  }

  /// The socket that the words of a command line name.
  private static func socket(in words: [String]) -> String {
    for (index, word) in words.enumerated() {
      if word == "--socket", index + 1 < words.count { return words[index + 1] }
      if word.hasPrefix("--socket=") { return String(word.dropFirst("--socket=".count)) }
    }
    return SocketPath.standard
  }
}

/// Texts that a thread waits for.
///
/// Unchecked: the semaphore is made for several threads, and lives as long as the reply, which both
/// sides hold.
private final class Reply: @unchecked Sendable {
  private let texts = Mutex<[String]>([])
  private let isGiven = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(isGiven, 0, 0) }

  deinit {
    sem_destroy(isGiven)
    isGiven.deallocate()
  }

  func give(_ given: [String]) {
    texts.withLock { $0 = given }
    sem_post(isGiven)
  }

  /// What is given within a time; nothing if it is not.
  func wait(seconds: Int) -> [String] {
    var deadline = timespec()
    clock_gettime(CLOCK_REALTIME, &deadline)
    deadline.tv_sec += seconds
    while sem_timedwait(isGiven, &deadline) != 0 {
      guard errno == EINTR else { return [] }
    }
    return texts.withLock { $0 }
  }
}

extension Client {
  /// The paths that begin like this one, as far as the daemon lists them at once: each also with the
  /// `/` that leads on, if there is something below.
  fileprivate func paths(_ beginning: String) async throws -> [String] {
    guard let slash = beginning.lastIndex(of: "/") else { return ["/"] }
    let (whole, name) = (String(beginning[..<slash]), beginning[slash...])
    var rows = try await rows([whole, "1", "1000"])
    if rows.hasMore {
      // Of many, those from the name on; and the part of that name.
      rows = try await self.rows([whole, "1", "1000", String(name)])
      rows.paths += (try? await self.rows([beginning, "1", "1"]))?.whole ?? []
    }
    return rows.paths
  }

  private func rows(
    _ arguments: [String]
  ) async throws -> (paths: [String], whole: [String], hasMore: Bool) {
    let report = try await report(.parts, arguments)
    func paths(_ row: Value) -> [String] {
      guard case .text(let path)? = row.child("path") else { return [] }
      let leadsOn =
        ["object", "map", "struct"].contains(row.cell("kind")) && row.child("count") != 0
      return leadsOn ? [path, path + "/"] : [path]
    }
    var found: [String] = []
    if case .array(let parts)? = report.child("parts") { found = parts.flatMap(paths) }
    return (found, report.child("whole").map(paths) ?? [], report.child("hasMore") == true)
  }
}
