import Access
import CBOR
import Lockstep
import Schemas
import Values
public import Wire

// Queries about the state or its past that take as long as to encode all of it: the shell has them
// answered beside the loop.
extension Server {
  /// Work that answers a query beside the loop; nil if the client has gone. An error if there is
  /// nothing to answer.
  public func inspection(
    of query: ShellQuery, for id: ConnectionID
  ) -> Result<Inspection, ReportError>? {
    guard let place = connections.place(of: id) else { return nil }
    do throws(ReportError) {
      return .success(try inspection(of: query, with: connections[place: place].rights))
    } catch {
      return .failure(error)
    }
  }

  func inspection(
    of query: ShellQuery, with rights: Rights?
  ) throws(ReportError) -> Inspection {
    do throws(ReportError) {
      switch query {
      case .parts(let request, _):
        let job = try listing(request, rights)
        return Inspection { .report(job.report()) }
      case .past(let request, _):
        let job = try look(back: request, rights)
        return Inspection { job.finding() }
      case .reloadPolicy, .metrics:
        throw ReportError(.refused, "this is not asked of the state")
      }
    } catch {
      throw ReportError(error.code, error.text.prefix(bytes: limits.textBytes))
    }
  }

  /// About how many bytes of memory that work takes.
  public func inspectionMemory(of query: ShellQuery) -> Int {
    // A state of the past is decoded, beside the one that there is.
    switch query {
    case .past: return memory.snapshotBytes + memory.size.memory
    case .parts(let request, _) where request.revision != nil:
      return memory.snapshotBytes + memory.size.memory
    case .parts, .metrics, .reloadPolicy: break
    }
    return memory.snapshotBytes
  }

  /// The path as it travels, and the filter of what may be seen there.
  private func sight(
    of path: Path, _ rights: Rights?
  ) throws(ReportError) -> (path: Path, filter: ViewFilter?) {
    guard let wirePath = wirePath(of: path) else {
      throw ReportError(.absent, "there can be nothing at \(path)")
    }
    guard case .shown(let filter) = sight(of: wirePath, with: rights) else {
      throw ReportError(.denied, "you may not read \(path)")
    }
    return (wirePath, filter)
  }

  /// The path as it travels of what clients call `path`; nil if there can be nothing. O(the types).
  private func wirePath(of path: Path) -> Path? {
    (try? Translation(from: schema, to: .names, root: .state))?.sourcePath(for: path)
  }

  /// The most bytes of a report's rows: what the loop sends in some hundred microseconds.
  private var mostRowBytes: Int { min(1 << 20, limits.frameBytes / 2) }

  private func listing(
    _ request: ListingRequest, _ rights: Rights?
  ) throws(ReportError) -> ListingJob {
    let (path, filter) = try sight(of: request.path, rights)
    guard let after = wirePath(of: Path(request.path.keys + request.after.keys)) else {
      throw ReportError(.malformed, "parts: there can be nothing at \(request.after)")
    }
    var former: PastJob?
    if let revision = request.revision {
      guard rights?.mayAdminister ?? true else {
        throw ReportError(.denied, "the past is for those who may administer the daemon")
      }
      former = try look(back: PastRequest(of: request.path, at: revision), rights)
    }
    let (state, looked, expectedBytes) = (core.state, former, memory.expectedBytes)
    return ListingJob(
      request: request, schema: schema, revision: request.revision ?? core.revision, path: path,
      filter: filter, history: publication.history,
      after: Array(after.keys.dropFirst(path.keys.count)), mostBytes: mostRowBytes,
      mostPathBytes: limits.pathBytes
    ) { () throws(CBORError) in
      if let looked, let revision = request.revision { return try looked.whole(at: revision) }
      var encoder = CBOREncoder(reservingCapacity: expectedBytes)
      state.encode(at: path, into: &encoder)
      return encoder.bytes
    }
  }

  private func look(
    back request: PastRequest, _ rights: Rights?
  ) throws(ReportError) -> PastJob {
    let (path, filter) = try sight(of: request.path, rights)
    let checkpoint: Past.Checkpoint?
    var (newest, newestRevision): (any Synchronizable, UInt64) = (core.state, core.revision)
    switch request.subject {
    case .value(let revision):
      guard revision <= core.revision else {
        throw ReportError(.absent, "the newest revision is \(core.revision)")
      }
      checkpoint = past.checkpoint(for: revision, in: publication.history)
    case .changes: checkpoint = past.oldest(in: publication.history)
    case .change(let revision):
      guard let jump = jumping.pending, jump.target == revision else {
        throw ReportError(.refused, "the jump has been given up")
      }
      (newest, newestRevision) = (jump.base.state, jump.base.revision)
      checkpoint = past.checkpoint(for: revision, in: publication.history)
    }
    guard let checkpoint else { throw absenceOfPast }
    return PastJob(
      checkpoint: checkpoint, past: past, history: publication.history, schema: schema,
      seed: core.seed, place: .init(path: path, pointer: request.path.pointer, filter: filter),
      subject: request.subject, revision: newestRevision, newest: newest, mostBytes: mostRowBytes,
      ephemeral: journaling.ephemeral, scopes: publication.views)
  }

  var absenceOfPast: ReportError {
    if let oldest = oldestRevision {
      return ReportError(
        .absent,
        "the past begins with revision \(oldest): what was before is forgotten "
          + "(--limit historyBytes=…)")
    }
    return ReportError(
      .absent,
      mayHavePast
        ? "there is no past yet: ask again in a second; if it stays so, memory is short, or changes "
          + "take more than historyBytes (--limit)"
        : "the state is too large to have a past: it takes more than half of historyBytes (--limit)"
    )
  }
}
