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
}
