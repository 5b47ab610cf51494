import EventLoop
import LockstepClient
import Values
import Wire

/// What the daemon's reports say at one moment.
struct TopLook: Sendable {
  /// A report, or the reason that there is none, in a few words.
  enum Answer<Contents: Sendable>: Sendable {
    case contents(Contents)
    case none(String)

    var contents: Contents? {
      switch self {
      case .contents(let contents): contents
      case .none: nil
      }
    }

    /// The reason that there are no contents; nil if there are.
    var reason: String? {
      switch self {
      case .contents: nil
      case .none(let reason): reason
      }
    }
  }

  /// The newest records of the log, ascending, and the number of the newest action.
  struct LogEnd: Sendable {
    var records: [LogRecord] = []
    var newest: UInt64 = 0
  }

  /// By a clock that never goes back.
  var time: ContinuousClock.Instant
  var status: Value
  var clients: Answer<[Value]>
  var effects: Answer<[Value]>
  var log: Answer<LogEnd>
  /// The values of the metrics that have no labels, by name.
  var metrics: Answer<[String: UInt64]>
  /// What the system says of the daemon's process; nil if it says nothing.
  var process: ProcessUsage?
}

extension TopLook {
  /// The most records of the log in one look. They bound what a look costs the daemon.
  static let mostRecords: UInt64 = 1000

  /// Ask the daemon. `newest` is the number of the newest action that the last look has seen.
  static func take(_ client: Client, after newest: UInt64?) async throws -> TopLook {
    let status = try await client.report(.status)
    return TopLook(
      time: ContinuousClock.now, status: status,
      clients: try await answer { try await client.rows(of: .clients) },
      effects: try await answer { try await client.rows(of: .effects) },
      log: try await answer { try await client.logEnd(after: newest) },
      metrics: try await answer { try await client.plainMetrics() },
      process: ProcessUsage(of: status))
  }

  /// The answer to a query that the daemon may refuse. Throws where the connection has failed.
  private static func answer<Contents: Sendable>(
    _ ask: () async throws -> Contents
  ) async throws -> Answer<Contents> {
    do {
      return .contents(try await ask())
    } catch let failure as Failure where failure.status == .denied {
      return .none("the daemon's policy does not let you see this")
    } catch let failure as Failure where failure.status == .refused && !failure.isForRestart {
      return .none(failure.message)
    }
  }
}

extension Failure {
  /// Whether the daemon is about to go on in another process: the same query will be answered.
  var isForRestart: Bool { code == ReportError.Code.restarting.rawValue }
}

extension Client {
  fileprivate func rows(of name: ReportName) async throws -> [Value] {
    guard case .array(let rows) = try await report(name) else {
      throw Failure(.goodbye, "the daemon's report '\(name.rawValue)' is no list.")
    }
    return Array(rows)
  }

  /// The records after an action, or the newest ones where that is nil or long ago.
  fileprivate func logEnd(after last: UInt64?) async throws -> TopLook.LogEnd {
    // Only as many as there are: in a daemon that does nothing, none but this one.
    let newest = try LogRecord.records(of: await report(.log, ["1"])).last?.sequence ?? 0
    var count = TopLook.mostRecords
    if let last, newest >= last {
      if newest == last { return TopLook.LogEnd(newest: newest) }
      // And a few that come meanwhile.
      count = min(count, newest - last + 32)
    }
    let records = try LogRecord.records(of: await report(.log, ["\(count)"]))
    return TopLook.LogEnd(records: records, newest: records.last?.sequence ?? newest)
  }

  fileprivate func plainMetrics() async throws -> [String: UInt64] {
    guard case .text(let text) = try await report(.metrics) else {
      throw Failure(.goodbye, "the daemon's metrics are no text.")
    }
    guard case .object(let families) = MetricFamilies.value(of: text) else { return [:] }
    var found: [String: UInt64] = [:]
    for (name, family) in families {
      guard case .array(let samples)? = family.child("samples"), samples.count == 1,
        let number = samples[0].child("value")?.number
      else { continue }
      found[name] = number
    }
    return found
  }
}
