import CBOR
import Documents
import EventLoop
import Values

/// Writes the successive values at a watched path.
struct WatchWriter {
  private let output: Output
  private let format: WatchFormat
  /// Whether long values are laid out again for each change.
  private let isPrettyAlways: Bool
  /// Whether the first value is not written.
  private let leavesOutFirst: Bool
  private let path: PathArgument
  private let conditions: [UntilCondition]
  private let limit: Int?
  private var written = 0
  /// The value that was written last; the inner nil means that there was none at the path.
  private var last: Value??

  init(
    output: Output, format: WatchFormat?, path: PathArgument,
    conditions: [UntilCondition], limit: Int?, leavesOutFirst: Bool = false
  ) {
    self.output = output
    isPrettyAlways = format == .pretty
    self.leavesOutFirst = leavesOutFirst
    self.format = format ?? (output.isPretty ? .pretty : .state)
    self.path = path
    self.conditions = conditions
    self.limit = limit
  }

  /// Write the path's value at a revision, if it has changed. Returns whether it was the last.
  ///
  /// `state` is the value at the path's scope, and `patch` the patch of the whole scope; an empty
  /// patch is a snapshot's.
  mutating func show(
    _ state: Value?, at revision: UInt64, patch: [UInt8]
  ) throws(Failure) -> Bool {
    let value = state?.value(at: path.rest)
    if let last, last.isSame(as: value) { return false }
    if !leavesOutFirst || last != nil {
      switch format {
      case .state: try showState(value)
      case .patch: try showPatch(value, revision, patch)
      // What changes is written by a `DiffWriter`.
      case .pretty, .diff: try showPretty(value, revision)
      }
      written += 1
    }
    last = .some(value)
    return written == limit
      || !conditions.isEmpty && conditions.allSatisfy { $0.holds(in: value, at: path.path) }
  }

  private func showState(_ value: Value?) throws(Failure) {
    if let value { try output.line(value) } else { try output.lines("") }
  }

  private func showPretty(_ value: Value?, _ revision: UInt64) throws(Failure) {
    var body = value.map(output.pretty) ?? output.faint("(nothing)")
    if !isPrettyAlways, let last, body.utf8.count(where: { $0 == 0x0a }) >= Self.mostLines,
      let changes = try? PlaceChange.all(from: last, to: value, at: path.path, along: [])
    {
      body = changes.map { $0.line(output) }.joined(separator: "\n")
    }
    try output.lines(output.faint("revision \(revision)") + "\n" + body)
  }

  /// A longer value is shown once, then what changes in it.
  private static var mostLines: Int { 8 }

  private func showPatch(
    _ value: Value?, _ revision: UInt64, _ patch: [UInt8]
  ) throws(Failure) {
    var bytes = patch
    // The scope's patch is the path's too, unless the path continues below the scope. Then, and for
    // a snapshot or a coalesced change, the line has the difference from the value written last.
    if last == nil || patch.isEmpty || !path.rest.keys.isEmpty {
      var encoder = CBOREncoder()
      if let last {
        _ = value.encodeDifference(from: last, into: &encoder)
      } else if let value {
        value.encodeReplacement(into: &encoder)
      } else {
        encoder.encodeUndefined()
      }
      bytes = encoder.bytes
    }
    do {
      let operations = try PatchOperations.operations(of: bytes)
      try output.line(["revision": Value(revision), "patch": operations])
    } catch let failure as Failure {
      throw failure
    } catch {
      throw Failure(.goodbye, "the daemon sent a patch that is none: \(error).")
    }
  }
}
