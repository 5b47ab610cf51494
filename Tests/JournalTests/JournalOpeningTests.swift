import CSQLite
import DaemonCore
import Glibc
import Journal
import Lockstep
import Testing
import Values

/// The conditions under which a journal is refused, and the texts of the errors.
@Suite struct JournalOpeningTests {
  let directory = TemporaryDirectory()

  @Test func `A second owner of the directory learns which process has it`() throws {
    let file = try directory.begun()
    #expect(
      error(.locked) { _ = try directory.open() }
        == "\(directory.path)/lock: process \(getpid()) has the journal. Stop it, or name another "
        + "directory.")
    withExtendedLifetime(file) {}
  }

  @Test func `The lock is released with its owner`() throws {
    do { _ = try directory.begun() }
    _ = try directory.open()
  }

  /// A program that is being started has one until it runs.
  @Test func `The lock is released even if another process has a copy of its descriptor`() throws {
    var copy: Int32 = -1
    do {
      let file = try directory.begun()
      copy = dup(try #require(descriptor(of: directory.path + "/lock")))
      withExtendedLifetime(file) {}
    }
    defer { close(copy) }
    try #require(copy >= 0)
    let file = try directory.open()
    file.close()
    _ = try directory.open()
  }

  private func descriptor(of path: String) -> Int32? {
    (0..<1024).first { descriptor in
      guard let name = realpath("/proc/self/fd/\(descriptor)", nil) else { return false }
      defer { free(name) }
      return String(cString: name) == path
    }
  }

  @Test func `A missing directory or journal is created only on request`() throws {
    let missing = directory.path + "/a"
    #expect(
      error(.unreachable) { _ = try JournalFile(directory: missing, mode: .sync, create: false) }
        == "\(missing): the directory cannot be reached (errno 2: No such file or directory). "
        + "Make it, or name another.")
    #expect(
      error(.unreachable) {
        _ = try JournalFile(directory: missing + "/b", mode: .sync, create: true)
      }
        == "\(missing)/b: the directory cannot be made (errno 2: No such file or directory). "
        + "Make it, or name another.")
    #expect(
      error(.unreachable) { _ = try directory.open(create: false) }
        == "\(directory.journal): there is no journal. Name the directory of one.")
    #expect(Files.size(directory.journal) == -1)
  }

  @Test func `A directory that is a file is refused`() {
    let name = directory.path + "/file"
    Files.write([1], to: name)
    #expect(
      error(.unreachable) { _ = try JournalFile(directory: name, mode: .sync, create: true) }
        == "\(name): not a directory. Name the directory that the journal is in.")
  }

  @Test func `A directory that is writable for everybody is refused`() {
    chmod(directory.path, 0o777)
    #expect(
      error(.unreachable) { _ = try directory.open() }
        == "\(directory.path): everybody may write to the directory. Take that right away "
        + "(chmod o-w), or name a directory of the daemon's own.")
  }

  @Test func `Files of other users are refused`() throws {
    guard geteuid() == 0 else { return }
    do { _ = try directory.begun() }
    chown(directory.journal, 1234, 0)
    #expect(
      error(.unreachable) { _ = try directory.open() }
        == "\(directory.journal): belongs to user 1234, and the daemon runs as user 0. Give it to "
        + "that user (chown), or run as its owner.")
    chown(directory.path, 1234, 0)
    #expect(error(.unreachable) { _ = try directory.open() }.contains("belongs to user 1234"))
  }

  @Test func `Symbolic links are refused`() throws {
    do { _ = try directory.begun() }
    for name in ["journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm"] {
      let (path, other) = (directory.path + "/" + name, directory.path + "/other")
      rename(path, other)
      symlink(other, path)
      #expect(
        error(.unreachable) { _ = try directory.open() }
          == "\(path): a symbolic link, which a journal must not be. Move it away, or name another "
          + "directory.")
      unlink(path)
      rename(other, path)
    }
    let lock = directory.path + "/lock"
    unlink(lock)
    symlink("/tmp/elsewhere", lock)
    #expect(error(.unreachable) { _ = try directory.open() }.contains("the lock cannot be opened"))
    #expect(Files.size("/tmp/elsewhere") == -1)
  }

  @Test func `A directory may be reached by a symbolic link`() throws {
    let link = directory.path + "/link"
    let real = directory.path + "/real"
    mkdir(real, 0o700)
    symlink(real, link)
    let file = try JournalFile(directory: link, mode: .sync, create: true)
    #expect(file.path == real + "/journal.sqlite")
  }

  @Test func `A journal that is a directory is refused`() {
    mkdir(directory.journal, 0o700)
    #expect(error(.unreachable) { _ = try directory.open() }.contains("not an ordinary file"))
  }

  @Test func `Other databases and other files stay unchanged`() {
    let advice = "Move the file away, or name another directory."
    Files.write(
      Array("hello, this is some text and no database at all\n".utf8), to: directory.journal)
    var bytes = Files.read(directory.journal)
    let text = error(.foreign) { _ = try directory.open() }
    #expect(
      text == "\(directory.journal): cannot be read or written: file is not a database "
        + "(SQLite 26). \(advice)")
    #expect(Files.read(directory.journal) == bytes)

    unlink(directory.journal)
    SQL.run(directory.journal, "CREATE TABLE t(x)")
    bytes = Files.read(directory.journal)
    #expect(
      error(.foreign) { _ = try directory.open() }
        == "\(directory.journal): a database of SQLite, and not a journal. Move it away, or name "
        + "another directory.")
    #expect(Files.read(directory.journal) == bytes)
  }

  @Test func `An empty file is not a journal`() {
    Files.write([], to: directory.journal)
    #expect(error(.foreign) { _ = try directory.open() }.contains("not a journal"))
  }

  @Test func `A journal of a newer version is refused`() throws {
    do { _ = try directory.begun() }
    SQL.run(directory.journal, "PRAGMA user_version = 9")
    #expect(
      error(.newer) { _ = try directory.open() }
        == "\(directory.journal): written by a newer version (format 9, and this one knows up to 3). "
        + "Use the newer version.")
  }

  @Test func `A journal with a trigger, or without a table, is refused`() throws {
    do { _ = try directory.begun() }
    SQL.run(directory.journal, "CREATE TRIGGER t AFTER INSERT ON log BEGIN SELECT 1; END")
    #expect(error(.corrupt) { _ = try directory.open() }.contains("not as a journal is laid out"))
    SQL.run(directory.journal, "DROP TRIGGER t")
    SQL.run(directory.journal, "ALTER TABLE session RENAME TO sessions")
    #expect(error(.corrupt) { _ = try directory.open() }.contains("no such table: session"))
  }

  @Test func `Files of an unfinished creation are removed`() throws {
    Files.write([1, 2, 3], to: directory.journal + ".new")
    Files.write([1, 2, 3], to: directory.journal + ".new-journal")
    let file = try directory.begun()
    #expect(Files.size(directory.journal + ".new") == -1)
    #expect(Files.size(directory.journal + ".new-journal") == -1)
    try file.probe()
  }

  @Test func `Commits are synced as the mode says`() throws {
    for (mode, level): (JournalFile.Mode, String) in [(.sync, "2"), (.async, "1")] {
      let directory = TemporaryDirectory()
      let file = try directory.begun(mode)
      #expect(try file.setting("synchronous") == level)
      #expect(try file.setting("journal_mode") == "wal")
      #expect(try file.setting("wal_autocheckpoint") == "0")
      #expect(try file.setting("auto_vacuum") == "2")
    }
  }

  @Test func `Another writer is waited for, then reported`() throws {
    let file = try directory.begun()
    var handle: OpaquePointer?
    sqlite3_open(directory.journal, &handle)
    sqlite3_exec(handle, "BEGIN IMMEDIATE", nil, nil, nil)
    #expect(
      error(.failed) { try file.probe() }
        == "\(directory.journal): cannot be read or written: database is locked (SQLite 5). Another "
        + "program writes to the file or holds it: let it end.")
    sqlite3_close(handle)
    try file.reopen()
    try file.probe()
  }

  @Test func `A closed journal is reported as closed`() throws {
    let file = try directory.begun()
    file.close()
    file.close()
    #expect(error(.failed) { _ = try file.rows() }.contains("the journal is closed"))
    #expect(error(.failed) { try file.probe() }.contains("the journal is closed"))
  }
}
