public import Access
public import Lockstep
public import Records
public import Values
public import Wire

/// The shell's id of a connection; never reused.
public struct ConnectionID: Hashable, Comparable, Sendable {
  public var rawValue: UInt64
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }
  public static func < (first: Self, second: Self) -> Bool { first.rawValue < second.rawValue }

  /// Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4), a tenth of the cost of
  /// SipHash: the daemon counts these numbers, so no client can make them collide. Dictionaries and
  /// sets call this requirement of `Hashable`, which is not documented; without it they would use
  /// the standard hash.
  public func _rawHashValue(seed: Int) -> Int {
    Int(truncatingIfNeeded: (rawValue &* 0x9E37_79B9_7F4A_7C15).byteSwapped) ^ seed
  }
}

/// The server's id of a snapshot that is being encoded.
public struct SnapshotJobID: Hashable, Comparable, Sendable {
  public var rawValue: UInt64
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }
  public static func < (first: Self, second: Self) -> Bool { first.rawValue < second.rawValue }
}

/// Everything that can happen to a server; only events change it.
public enum Event<Action: Sendable>: Sendable {
  /// A peer connected. The token is random and fresh, for the session if the server begins one.
  case opened(ConnectionID, Peer, SessionToken)
  /// Bytes arrived. (`Server.receive` takes them without a copy.)
  case received(ConnectionID, [UInt8])
  /// The peer disconnected, or the connection was closed as commanded.
  case closed(ConnectionID)
  /// The last `send` was not written completely; `unsent` bytes wait. Handled after all commands of
  /// the batch with that send have been executed, and before any later event.
  case blocked(ConnectionID, unsent: Int)
  /// Everything sent has been written.
  case drained(ConnectionID)
  /// A snapshot has been encoded. With its frames and, if known, the encoded size in bytes of
  /// everything at its path, visible to the scope or not.
  case snapshotEncoded(SnapshotJobID, [[UInt8]], wholeBytes: Int? = nil)
  /// There is not enough memory to encode a snapshot.
  case snapshotImpossible(SnapshotJobID)
  /// The large action that a connection holds has been decoded (`Command.decodeAction`). Nil: the
  /// server decodes it itself, while everybody waits.
  case actionDecoded(ConnectionID, DecodedAction<Action>?)
  /// The state at a revision in value form (`Command.makeCheckpoint`); empty if there was no memory
  /// for it.
  case checkpointMade(UInt64, [UInt8])
  /// The digest of the state has been computed (`Command.computeDigest`): its parts keep theirs.
  case digestComputed
  /// The result of `Command.measureState`.
  case stateMeasured(StateMeasure)
  /// The memory that the process may still take; nil if nothing limits it.
  case memoryMeasured(MemoryReading?)
  /// No more input for now: compose and send. Follows every batch of other events.
  case turnEnded
  /// The journal committed or failed to write batches or a snapshot.
  case journal(JournalEvent)
  /// The server may accept clients. Handled before any client action.
  case started(Start)
  /// An action of the process's owner. It is reduced and sent like a client's action, but not
  /// acknowledged.
  case acted(Action)
  /// An effect sent an action.
  case effectSent(EffectID, Action)
  /// An effect cancels the effects with this key.
  case effectCancelled(ScopedEffectKey)
  /// The task of an effect has ended, with the error that it did not catch, if any.
  case effectEnded(EffectID, unhandled: String?)
  /// The wall-clock time at the event's instant: sent at the start and from time to time, because
  /// wall clocks are adjusted.
  case clockSet(Timestamp)
  /// The process that made a connection has ended. The connection may live on, or have closed long
  /// ago. Not sent after `Command.unwatch`.
  case exited(ConnectionID)
  /// The policy is replaced, also for clients that are connected.
  case policy(Policy)
  /// The answer to a query that only the shell can answer (`Command.answer`): a report as CBOR.
  case answered(ConnectionID, query: UInt64, [UInt8])
  /// The answer to a query for a jump: how the state must change. A recording has its report.
  case changeFound(ConnectionID, query: UInt64, FoundChange)
  /// A second has passed.
  case tick
  /// Say goodbye to every client, and to every new one.
  case stop(retryAfter: UInt64?)
  /// The process ends and another takes over its connections: compose everything that is due, even
  /// for clients that do not read. No event may follow; `Server.handOver` returns the rest.
  case handingOver(retryAfter: UInt64)
  /// Connections of a former process use these scope ids, which no new scope may get. Comes before
  /// any of these connections is `inherited`.
  case scopesReserved([UInt64])
  /// A connection of a former process continues; its socket was handed over. The bytes that the
  /// former process had not written (`HandedConnection.unsent`) must be written before any
  /// commanded `send`.
  case inherited(HandedConnection, isTranslated: Bool)
}

/// An instruction that the shell must execute. What is large, and rarer than `send`, is kept apart: so
/// every command is small to copy.
public enum Command: Equatable, Sendable {
  /// Write these frames, after everything already sent on this connection. The arrays are shared
  /// between clients, not copied.
  case send(ConnectionID, Frames)
  /// Close once everything sent has been written; `Event.closed` follows.
  case close(ConnectionID)
  /// Close at once: the peer does not read. `Event.closed` follows.
  case abort(ConnectionID)
  /// Read nothing from this peer until told otherwise.
  case pauseReading(ConnectionID)
  case resumeReading(ConnectionID)
  /// Start, or cancel, the task of an effect (`Server.operation`).
  indirect case effect(EffectOrder)
  /// End another turn soon, even if no event arrives: there is more work than one turn should do.
  case wake
  /// Write this batch to the journal, after the batches before it; `Event.journal` follows.
  indirect case keep(JournalBatch)
  /// Write a snapshot of the state (`Server.pendingSnapshot`) to the journal, after the earlier
  /// batches. Later batches may be written before it, unless it `heals`: then they must come after
  /// it.
  case keepSnapshot(heals: Bool)
  /// Retry the journal after a failure: see whether the file can be written again.
  case reopenJournal
  /// Encode the job's snapshot (`Server.snapshot(for:)`) off the loop; `Event.snapshotEncoded`
  /// follows.
  case encodeSnapshot(SnapshotJobID)
  /// Decode the large action that a connection holds (`Server.action(for:)`) off the loop;
  /// `Event.actionDecoded` follows, even if the connection has ended.
  case decodeAction(ConnectionID)
  /// Measure the state (`Server.state`) off the loop; `Event.stateMeasured` follows.
  case measureState
  /// Encode the state (`Server.state`) in value form off the loop; `Event.checkpointMade` follows.
  case makeCheckpoint
  /// Compute the digest of the state (`Server.state`) off the loop; `Event.digestComputed` follows.
  case computeDigest
  /// Measure how much memory the process may still take; `Event.memoryMeasured` follows.
  case measureMemory
  /// Answer this query of a connection, which may take a while; `Event.answered` follows, or for a jump
  /// `Event.changeFound`.
  indirect case answer(ConnectionID, query: UInt64, ShellQuery)
  /// Stop watching the process of this connection: `Event.exited` is not needed any more. Sent for
  /// every connection whose process has not ended.
  case unwatch(ConnectionID)
  /// Log a line for the administrator.
  indirect case log(LogLine)
}

/// A query that the shell answers, because it is about the process or takes long.
public enum ShellQuery: Hashable, Sendable {
  /// Reload the policy file and report the result.
  case reloadPolicy
  /// The shell's metrics in the text format of OpenMetrics, appended to the server's metrics, which
  /// are the associated text.
  case metrics(String)
  /// List parts of the state for a user (`Server.inspection`).
  case parts(ListingRequest, uid: UInt64)
  /// Look at the past of a part for a user (`Server.inspection`).
  case past(PastRequest, uid: UInt64)

  /// The user for whom the shell looks at the state; nil for other queries.
  public var uid: UInt64? {
    switch self {
    case .parts(_, let uid), .past(_, let uid): uid
    case .reloadPolicy, .metrics: nil
    }
  }
}

/// A log line for the administrator.
public struct LogLine: Equatable, Sendable {
  public enum Level: Int, Comparable, Sendable {
    case debug, info, notice, warning, error
    public static func < (first: Self, second: Self) -> Bool { first.rawValue < second.rawValue }
  }

  public var level: Level
  public var message: String
  /// Names and values, in display order.
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
