public import Access
public import Lockstep
public import Records
public import Values
public import Wire

/// The shell's name for a connection; never used twice.
public struct ConnectionID: Hashable, Comparable, Sendable {
  public var rawValue: UInt64
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }
  public static func < (first: Self, second: Self) -> Bool { first.rawValue < second.rawValue }
}

/// The server's name for a snapshot that is being encoded.
public struct SnapshotJobID: Hashable, Comparable, Sendable {
  public var rawValue: UInt64
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }
  public static func < (first: Self, second: Self) -> Bool { first.rawValue < second.rawValue }
}

/// Everything that happens to a server: nothing else changes it.
public enum Event<Action: Sendable>: Sendable {
  /// A peer connected. The token is random and fresh, should the server need one for it.
  case opened(ConnectionID, Peer, SessionToken)
  /// Bytes came. (`Server.receive` takes them without a copy.)
  case received(ConnectionID, [UInt8])
  /// The peer is gone, or the connection was closed as commanded.
  case closed(ConnectionID)
  /// Not everything of the last `send` could be written: so many bytes wait. Handled when the
  /// commands that the send was among have been executed, before anything that happens then.
  case blocked(ConnectionID, unsent: Int)
  /// Everything sent has been written.
  case drained(ConnectionID)
  /// A snapshot is encoded: its frames, and, if it is known, how many bytes all that stands at its
  /// path takes, seen or not.
  case snapshotEncoded(SnapshotJobID, [[UInt8]], wholeBytes: Int? = nil)
  /// There is no memory to encode a snapshot.
  case snapshotImpossible(SnapshotJobID)
  /// The state that was to be measured is so large.
  case stateMeasured(StateMeasure)
  /// How much memory the process may still take; nil where nothing limits it.
  case memoryMeasured(MemoryReading?)
  /// No more input for now: compose and send. Follows every batch of other events.
  case turnEnded
  /// What became of batches and snapshots that were to be kept.
  case journal(JournalEvent)
  /// Clients may come. Handled before any action of theirs.
  case started(Start)
  /// The owner of the process acts. It is reduced and sent as a client's action would be, and
  /// acknowledged to nobody.
  case acted(Action)
  /// An effect sent an action.
  case effectSent(EffectID, Action)
  /// An effect cancels what runs under a name.
  case effectCancelled(ScopedEffectKey)
  /// The task of an effect has ended, with an error that it did not catch if there was one.
  case effectEnded(EffectID, unhandled: String?)
  /// The time of day, at the time that the event has: at the start, and now and then, for clocks are
  /// set.
  case clockSet(Timestamp)
  /// The process that made a connection has ended. The connection may live on, or be gone long
  /// since. Until the server says `unwatch`.
  case exited(ConnectionID)
  /// Another policy holds from here on, for those too who are connected.
  case policy(Policy)
  /// The answer to a query that only the shell can answer (`Command.answer`).
  case answered(ConnectionID, query: UInt64, Value)
  /// A second has passed.
  case tick
  /// Say goodbye to everyone; accept no one.
  case stop(retryAfter: UInt64?)
  /// The process ends, and another goes on with its connections: compose everything that is due,
  /// even for those who do not read. Nothing is to happen afterwards; `Server.handOver` tells the
  /// rest.
  case handingOver(retryAfter: UInt64)
  /// Connections of a former process have these scopes, whose numbers must stay theirs: before any
  /// of them is `inherited`.
  case scopesReserved([UInt64])
  /// A connection of a former process goes on, whose socket has come along. What that had not
  /// written (`HandedConnection.unsent`) must be written before what is commanded.
  case inherited(HandedConnection, isTranslated: Bool)
}

extension Event: Equatable where Action: Equatable {}

/// What the shell must now do.
public enum Command: Equatable, Sendable {
  /// Write these frames, after everything already sent on this connection. The arrays are shared
  /// between clients, not copied.
  case send(ConnectionID, [[UInt8]])
  /// Close once everything sent has been written; `Event.closed` follows.
  case close(ConnectionID)
  /// Close at once: the peer does not read. `Event.closed` follows.
  case abort(ConnectionID)
  /// Read nothing from this peer until told otherwise.
  case pauseReading(ConnectionID)
  case resumeReading(ConnectionID)
  /// Start, or cancel, the task of an effect (`Server.operation`).
  case effect(EffectOrder)
  /// End another turn soon, though nothing may happen until then: there is more to do than one
  /// turn should take.
  case wake
  /// Keep this, behind what was to be kept before; `Event.journal` follows.
  case keep(JournalBatch)
  /// Keep a snapshot of the state (`Server.pendingSnapshot`), behind the batches before; those that
  /// follow may be kept earlier, unless it `heals`: then they must come behind it.
  case keepSnapshot(heals: Bool)
  /// Keeping failed some time ago: see whether the file can be written again.
  case reopenJournal
  /// Encode the job's snapshot (`Server.snapshot(for:)`) beside the loop;
  /// `Event.snapshotEncoded` follows.
  case encodeSnapshot(SnapshotJobID)
  /// Measure the state (`Server.state`) beside the loop; `Event.stateMeasured` follows.
  case measureState
  /// Measure how much memory the process may still take; `Event.memoryMeasured` follows.
  case measureMemory
  /// Answer this query of a connection, which may take a while; `Event.answered` follows.
  case answer(ConnectionID, query: UInt64, ShellQuery)
  /// `Event.exited` of this connection is of no interest any more. Told of every connection whose
  /// process has not ended.
  case unwatch(ConnectionID)
  /// Tell the administrator.
  case log(LogLine)
}

/// A query that the shell answers, for it is about what the process does.
public enum ShellQuery: Hashable, Sendable {
  /// Read the policy file again, and say what came of it.
  case reloadPolicy
  /// What the shell counts, in the text format of OpenMetrics, behind what the server counts.
  case metrics(String)
}

/// Something an administrator wants to know.
public struct LogLine: Equatable, Sendable {
  public enum Level: Int, Comparable, Sendable {
    case debug, info, notice, warning, error
    public static func < (first: Self, second: Self) -> Bool { first.rawValue < second.rawValue }
  }

  public var level: Level
  public var message: String
  /// Names and values, in the order to show them.
  public var fields: [Field]

  public struct Field: Equatable, Sendable {
    public var name: String
    public var value: String
    /// Whether machines read the value as a number.
    public var isNumber = false

    public init(_ name: String, _ value: String) {
      self.name = name
      self.value = value
    }

    public init(_ name: String, _ number: some FixedWidthInteger) {
      self.init(name, "\(number)")
      isNumber = true
    }
  }

  public init(_ level: Level, _ message: String, _ fields: [Field] = []) {
    self.level = level
    self.message = message
    self.fields = fields
  }
}
