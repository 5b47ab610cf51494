import Foundation
import Lockstep
import TodosFeature

/// A file of titles, one a line. The number of a line, from 1, is the identifier of its todo.
actor TodoFile {
  private let path: String
  private let pageSize: Int

  init(path: String, pageSize: Int) {
    self.path = path
    self.pageSize = pageSize
  }

  func page(_ number: Int) throws(BackendError) -> Page {
    let todos = try titles().enumerated().map { Todo(id: $0.offset + 1, title: $0.element) }
    let rest = todos.dropFirst(number * pageSize)
    return Page(
      number: number, todos: Array(rest.prefix(pageSize)), hasMore: rest.count > pageSize)
  }

  func create(_ title: String) throws(BackendError) -> Todo {
    guard !title.isEmpty, !title.contains(where: \.isNewline) else { throw .badTitle(title) }
    let titles = try titles() + [title]
    do {
      try titles.map { $0 + "\n" }.joined()
        .write(toFile: path, atomically: true, encoding: .utf8)
    } catch {
      throw .unavailable(reason: "cannot write \(path)")
    }
    return Todo(id: titles.count, title: title)
  }

  private func titles() throws(BackendError) -> [String] {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
      throw .unavailable(reason: "cannot read \(path)")
    }
    return text.split(whereSeparator: \.isNewline).map(String.init)
  }
}

extension Backend {
  /// A file whose operations take `delay`.
  static func file(_ file: TodoFile, delay: Duration, clock: any Clock<Duration>) -> Backend {
    Backend(
      page: { number in
        await result(after: delay, clock) { () throws(BackendError) in try await file.page(number) }
      },
      create: { title in
        await result(after: delay, clock) { () throws(BackendError) in
          try await file.create(title)
        }
      })
  }

  private static func result<Success>(
    after delay: Duration, _ clock: any Clock<Duration>,
    of operation: () async throws(BackendError) -> Success
  ) async -> Result<Success, BackendError> {
    // A cancelled request does nothing.
    guard (try? await clock.pause(for: delay)) != nil else {
      return .failure(.unavailable(reason: "cancelled"))
    }
    do throws(BackendError) { return .success(try await operation()) } catch {
      return .failure(error)
    }
  }
}
