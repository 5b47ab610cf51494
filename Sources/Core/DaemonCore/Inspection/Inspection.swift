import Values
public import Wire

/// A look at the state or its past, to be taken beside the loop: on any thread.
public struct Inspection: Sendable {
  private let work: @Sendable () -> Finding

  init(_ work: @escaping @Sendable () -> Finding) { self.work = work }

  /// Take the look. Takes about as long as to encode the state.
  public func finding() -> Finding { work() }
}

/// What a look at the state has found.
public enum Finding: Equatable, Sendable {
  /// The report to the client as CBOR.
  case report([UInt8])
  /// For a jump, how the state must change: the server makes the report.
  case change(FoundChange)

  public init(_ error: ReportError) { self = .report(error.report.encoded) }

  /// As CBOR, in the form in which recordings have it.
  package var report: [UInt8] {
    switch self {
    case .report(let report): report
    case .change(let change): change.report
    }
  }

  /// The event that tells the server.
  public func event<Action>(for connection: ConnectionID, query: UInt64) -> Event<Action> {
    switch self {
    case .report(let report): .answered(connection, query: query, report)
    case .change(let change): .changeFound(connection, query: query, change)
    }
  }
}
