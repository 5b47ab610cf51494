import DaemonCore
import Glibc
import Journal
import Lockstep
import Testing
import Values

@Suite struct JournalReaderTests {
  let directory = TemporaryDirectory()

  @Test func `A journal is read while it is written, and reading changes nothing`() throws {
    var story = Story()
    let file = try directory.begun()
    try file.append([story.batch(30)])
    let reader = try JournalReader(reading: directory.path)
    #expect(try reader.rows() == story.rows)
    try file.append([story.batch(30)])
    #expect(try reader.rows() == story.rows)
    let count = story.rows.count
    let batch = story.batch(5)
    let counts = try reader.reading { () throws(JournalError) in
      let before = try reader.rows().count
      try file.append([batch])
      return [before, try reader.rows().count]
    }
    #expect(counts == [count, count])
    #expect(try reader.rows() == story.rows)
    #expect(try reader.contents() == file.contents())
    // Closing the reader does not end the log.
    reader.close()
    try file.append([story.batch(5)])
    #expect(try file.rows() == story.rows)
  }

  @Test func `A copy can be read with or without its log`() throws {
    var story = Story()
    let file = try directory.begun()
    try file.append([story.batch(30)])
    let copy = directory.path + "/a copy? with #1 %20.sqlite"
    for suffix in ["", "-wal"] {
      Files.write(Files.read(directory.journal + suffix), to: copy + suffix)
    }
    #expect(try JournalReader(reading: copy).rows() == story.rows)
    file.close()
    for suffix in ["-wal", "-shm"] { unlink(copy + suffix) }
    Files.write(Files.read(directory.journal), to: copy)
    let before = Files.read(copy)
    #expect(try JournalReader(reading: copy).rows() == story.rows)
    #expect(Files.read(copy) == before)
    #expect(Files.size(copy + "-wal") == -1 && Files.size(copy + "-shm") == -1)
  }

  @Test func `A file that is no journal is refused`() throws {
    let path = directory.path + "/x"
    #expect(
      error(.unreachable) { _ = try JournalReader(reading: path) }
        == "\(path): cannot be reached (errno 2: No such file or directory). Name a journal, or its "
        + "directory.")
    #expect(
      error(.unreachable) { _ = try JournalReader(reading: directory.path) }
        .hasPrefix("\(directory.journal): cannot be reached"))
    #expect(
      error(.unreachable) { _ = try JournalReader(reading: "/dev/null") }
        == "/dev/null: not an ordinary file. Name a journal, or its directory.")
    Files.write(Array(repeating: 65, count: 5000), to: path)
    #expect(
      error(.foreign) { _ = try JournalReader(reading: path) }.contains("file is not a database"))
    unlink(path)
    SQL.run(path, "CREATE TABLE t(x)")
    #expect(error(.foreign) { _ = try JournalReader(reading: path) }.contains("and not a journal"))
  }
}
