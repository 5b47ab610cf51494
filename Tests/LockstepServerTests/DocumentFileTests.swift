import DaemonCore
import Documents
import Foundation
import Testing
import Values

@testable import LockstepServer

@Suite struct DocumentFileTests {
  @Test("a file of an initial state is read to the limit and no further")
  func limit() throws {
    let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    try Data(#"{"a":1}"#.utf8).write(to: URL(filePath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(try DocumentFile.read(path, limit: 7) == ["a": 1] as Value)
    let failure = #expect(throws: DocumentFile.Failure.self) {
      try DocumentFile.read(path, limit: 6)
    }
    #expect(failure?.description == "\(path) has more than 6 bytes: too many for an initial state")
    // It has no end.
    #expect(throws: DocumentFile.Failure.self) {
      try DocumentFile.read("/dev/zero", limit: 1 << 20)
    }
  }

  @Test("a daemon that begins with a document hashes it once, with a seed of its own")
  func seed() throws {
    let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    try Data(#"{"a":{"b":1}}"#.utf8).write(to: URL(filePath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    let (first, second) = (try DocumentFile.document(path), try DocumentFile.document(path))
    #expect(first.seed != .unseeded && first.seed != second.seed)
    guard case .object(let members) = first.root, case .object(let inner)? = members["a"] else {
      Issue.record("\(first.root)")
      return
    }
    #expect(members.seed == first.seed && inner.seed == first.seed)
    #expect(try Startup.anew(first, nil).seed == first.seed)
    // One that was not read from a file has no seed to take.
    #expect(try Startup.anew(Document(), nil).seed != .unseeded)
  }
}
