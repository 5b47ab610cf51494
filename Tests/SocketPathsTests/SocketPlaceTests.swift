import Foundation
import SocketPaths
import Testing

struct SocketPlaceTests {
  @Test func `a character that a shell would interpret is escaped`() throws {
    #expect(SocketPlace("/run/a-b_c.sock").word == "/run/a-b_c.sock")
    for path in ["/tmp/a b", "/tmp/it's", "/tmp/$HOME;x", "/tmp/é\"*?", "/tmp/a\\b"] {
      let process = Process()
      let pipe = Pipe()
      process.executableURL = URL(filePath: "/bin/sh")
      process.arguments = ["-c", "printf %s \(SocketPlace(path).word)"]
      process.standardOutput = pipe
      try process.run()
      let said = pipe.fileHandleForReading.readDataToEndOfFile()
      process.waitUntilExit()
      #expect(String(decoding: said, as: UTF8.self) == path)
    }
  }

  @Test func `a place is servable if its directory is writable or can be made`() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let here = SocketPlace(folder + "/s")
    #expect(here.hasDirectory && here.isServable && here.directory == folder)
    let below = SocketPlace(folder + "/a/b/s")
    #expect(!below.hasDirectory && below.isServable && below.directory == folder + "/a/b")
    try Data().write(to: URL(filePath: folder + "/file"))
    #expect(!SocketPlace(folder + "/file/s").isServable)
    #expect(!SocketPlace(folder + "/" + String(repeating: "x", count: 108)).isServable)
    #expect(SocketPlace.alternative.isServable)
  }

  @Test func `only the directories of standard places are made automatically`() {
    #expect(SocketPlace(SocketPath.system).makesDirectory == (geteuid() == 0))
    #expect(SocketPlace("/tmp/lockstep-\(geteuid())/lockstep.sock").makesDirectory)
    #expect(!SocketPlace("/tmp/lockstep.sock").makesDirectory)
    #expect(!SocketPlace("/tmp/lockstep-\(geteuid() + 1)/lockstep.sock").makesDirectory)
    #expect(!SocketPlace("/run/lockstep/other.sock").makesDirectory)
  }
}
