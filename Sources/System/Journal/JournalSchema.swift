import Values

// The file
//
//     journal   one row: epoch and seed, and the last cut
//     run       the runs of the daemon, each with its feature's schema
//     session   tokens and users, by number
//     log       the stored actions, each with its change and its outcome: one a row, or, of a busy
//               turn, many
//     snapshot  the newest complete one
//     part      its bytes, and those of one that is being written or removed
//     outcomes  the outcomes of the sessions' actions, as of a snapshot
//     suspect   actions during which the process died
//     actions   a view of the log for people
//
// Almost everything that is stored at the end of a turn is in `log` alone, so that a commit touches
// few pages. Unsigned numbers are stored as the signed ones of the same bits. Every row carries a
// seal, a hash of its contents: flipped bits are detected, and reported with what they belong to.
// The seal of a row of the log covers the seal of the row before, so that a row missing in between
// is detected.

enum JournalSchema {
  /// "LkSt": identifies a journal to `file` and SQLite.
  static let applicationID: Int64 = 0x4c6b_5374
  /// The version that is written: the third has a commit log beside it, and packs of several turns.
  static let version: Int64 = 3
  /// The oldest version that is read: without packs.
  static let oldest: Int64 = 1

  /// The first settings of a new file. They must come before the tables.
  static let layout = """
    PRAGMA page_size = 4096;
    PRAGMA auto_vacuum = INCREMENTAL;
    """

  static let tables = """
    CREATE TABLE journal(
      one INTEGER PRIMARY KEY CHECK(one = 1), epoch INTEGER NOT NULL, seed INTEGER NOT NULL,
      cut_sequence INTEGER NOT NULL, cut_seal INTEGER NOT NULL, probes INTEGER NOT NULL,
      seal INTEGER NOT NULL);
    CREATE TABLE schema(id INTEGER PRIMARY KEY, bytes BLOB NOT NULL, seal INTEGER NOT NULL);
    CREATE TABLE run(
      run INTEGER PRIMARY KEY, base INTEGER NOT NULL, time INTEGER NOT NULL,
      began INTEGER NOT NULL, ended INTEGER, schema INTEGER NOT NULL, seal INTEGER NOT NULL);
    CREATE TABLE session(
      number INTEGER PRIMARY KEY, token BLOB NOT NULL, uid INTEGER NOT NULL,
      since INTEGER NOT NULL, until INTEGER, seal INTEGER NOT NULL);
    CREATE TABLE log(
      sequence INTEGER PRIMARY KEY, revision INTEGER NOT NULL, turn INTEGER, digest INTEGER,
      time INTEGER NOT NULL, kind INTEGER NOT NULL, actor TEXT, effect INTEGER,
      connection INTEGER, pid INTEGER, uid INTEGER, gid INTEGER, label TEXT,
      name TEXT NOT NULL, action BLOB, base INTEGER, patch BLOB,
      session INTEGER, number INTEGER, outcome INTEGER, code INTEGER, reason TEXT, place BLOB,
      seal INTEGER NOT NULL, \(packs[0]), \(packs[1]), \(packs[2]));
    CREATE TABLE snapshot(
      id INTEGER PRIMARY KEY, revision INTEGER NOT NULL,
      base INTEGER NOT NULL, sequence INTEGER NOT NULL, time INTEGER NOT NULL,
      digest INTEGER NOT NULL, sessions INTEGER NOT NULL, session_count INTEGER NOT NULL,
      parts INTEGER NOT NULL, bytes INTEGER NOT NULL, seal INTEGER NOT NULL);
    CREATE TABLE part(
      snapshot INTEGER NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL,
      seal INTEGER NOT NULL, UNIQUE(snapshot, number));
    CREATE TABLE outcomes(
      snapshot INTEGER NOT NULL, number INTEGER NOT NULL, runs BLOB NOT NULL,
      seal INTEGER NOT NULL, UNIQUE(snapshot, number));
    CREATE TABLE suspect(
      token BLOB NOT NULL, number INTEGER NOT NULL, kills INTEGER NOT NULL,
      seal INTEGER NOT NULL, UNIQUE(token, number));
    \(view)
    PRAGMA application_id = \(applicationID);
    PRAGMA user_version = \(version);
    """

  /// The columns of the second version: the number of actions before this one that are packed, the
  /// revision of their newest change, and the pack (`RowPack`).
  private static let packs = ["packed INTEGER", "changed INTEGER", "pack BLOB"]

  /// For people. `lockstep journal` also lists the actions that are packed.
  private static let view = """
    CREATE VIEW actions AS SELECT
      revision,
      strftime('%Y-%m-%dT%H:%M:%S', time / 1000000000, 'unixepoch')
        || printf('.%03dZ', time / 1000000 % 1000) AS time,
      CASE kind
        WHEN 1 THEN 'client ' || connection || ' (pid ' || pid || ', uid ' || uid || ')'
        WHEN 2 THEN 'effect ' || actor
        WHEN 3 THEN 'timer ' || actor
        WHEN 4 THEN 'middleware ' || actor
        ELSE 'the daemon' END AS origin,
      name AS action,
      CASE outcome
        WHEN 1 THEN 'unchanged'
        WHEN 2 THEN 'swallowed'
        WHEN 3 THEN 'accepted'
        WHEN 4 THEN 'rejected: ' || reason
        WHEN 5 THEN 'unknown'
        ELSE 'reduced' END AS outcome,
      coalesce(length(patch), 0) AS bytes,
      coalesce(packed, 0) AS packed
      FROM log ORDER BY sequence;
    """

  /// What brings a file of the first version to this one.
  static let renewal = """
    ALTER TABLE log ADD COLUMN \(packs[0]);
    ALTER TABLE log ADD COLUMN \(packs[1]);
    ALTER TABLE log ADD COLUMN \(packs[2]);
    DROP VIEW IF EXISTS actions;
    \(view)
    PRAGMA user_version = \(version);
    """
}

/// A hash of a row's contents. It detects accidents, not forgery.
struct Seal {
  private var words: [UInt64] = []
  private let seed: HashSeed

  /// The epoch is the seed, so that a row of another journal does not fit.
  init(epoch: UInt64) {
    seed = HashSeed(epoch)
    words.reserveCapacity(64)
  }

  mutating func begin() { words.removeAll(keepingCapacity: true) }

  mutating func add(_ word: UInt64) { words.append(word) }

  mutating func add(_ word: Int64) { words.append(UInt64(bitPattern: word)) }

  mutating func add(_ word: UInt64?) {
    words.append(word == nil ? 0 : 1)
    words.append(word ?? 0)
  }

  mutating func add(_ word: Int64?) { add(word.map { UInt64(bitPattern: $0) }) }

  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    words.append(UInt64(bytes.count))
    words.append(Hashing.sip(bytes, seed: seed))
  }

  mutating func add(_ bytes: UnsafeRawBufferPointer?) {
    words.append(bytes == nil ? 0 : 1)
    if let bytes { add(bytes) }
  }

  mutating func add(_ bytes: [UInt8]) { bytes.withUnsafeBytes { add($0) } }

  mutating func add(_ text: String) {
    var text = text
    text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
  }

  mutating func add(_ text: String?) {
    words.append(text == nil ? 0 : 1)
    if let text { add(text) }
  }

  var value: UInt64 { words.withUnsafeBytes { Hashing.sip($0, seed: seed) } }
}
