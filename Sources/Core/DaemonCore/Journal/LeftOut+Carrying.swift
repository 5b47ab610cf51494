import CBOR
import Records
import Schemas
import Values

/// What becomes of fields that a version of a feature does not know when another begins.
struct Carrying {
  /// Whether something that was left out before was put back.
  var hasPutBack = false
  /// The names of what is lost: the next version knows it, and has no form for all of it.
  var lost: [String] = []
}

extension [LeftOut] {
  /// So many versions, each of which the next did not know, are remembered, and so many bytes of what
  /// they left out: every snapshot has them.
  private static var most: (versions: Int, bytes: Int) { (8, 1 << 25) }

  /// Continue beside a state that has been translated. What the translation leaves out of `former`
  /// is added; what the current schema knows of what was left out before is put into `state`, the
  /// translated one, and is not left out any more.
  ///
  /// The fields of an entry that is gone are not put back; those of one that was removed and made
  /// again under the same key are. Ephemeral fields are not put back: what they told is over. What the
  /// current schema knows by the same name and another kind waits on. O(the state + what was left out).
  @_optimize(size)
  mutating func carry(
    from former: [UInt8], of schema: Schema, by translation: Translation, into state: inout [UInt8],
    of current: Schema, ephemeral: EphemeralPaths
  ) throws(CBORError) -> Carrying {
    var carrying = Carrying()
    var untyped: UntypedState?
    var remaining: [LeftOut] = []
    for item in self {
      guard let own = item.translation(to: current) else {
        remaining.append(item)
        continue
      }
      let (known, rest, lost) = try own.divide(leftOut: item.patch)
      if let rest { remaining.append(LeftOut(schema: item.schema, patch: rest)) }
      carrying.lost += lost
      guard let known else { continue }
      carrying.lost += item.names(lostBy: own, after: schema)
      var patch: [UInt8] = []
      guard known.withUnsafeBytes({ ephemeral.appendKept(of: $0, to: &patch) }) else { continue }
      var next = untyped ?? UntypedState(state)
      try next.putBack(patch)
      untyped = next
    }
    if let patch = try translation.leftOut(of: former) {
      remaining.append(LeftOut(schema: schema, patch: patch))
    }
    while remaining.count > Self.most.versions
      || remaining.reduce(0, { $0 + $1.patch.count }) > Self.most.bytes
    {
      let oldest = remaining.removeFirst()
      carrying.lost += oldest.names(unknownTo: current)
    }
    self = remaining
    if let changed = untyped?.encoded {
      state = changed
      carrying.hasPutBack = true
    }
    return carrying
  }
}

extension LeftOut {
  /// The names of the fields of this schema that another does not have; of all fields of the state, if
  /// the other is too different.
  @_optimize(size)
  fileprivate func names(unknownTo other: Schema) -> [String] {
    if let translation = translation(to: other) { return translation.leftOut }
    guard case .type(let name) = schema.state, case .structure(let fields)? = schema.types[name]
    else { return ["state"] }
    return fields.map { "state.\($0.name)" }
  }

  /// The translation of what it has; nil if the other schema is too different.
  @_optimize(size)
  fileprivate func translation(to other: Schema) -> Translation? {
    try? Translation(from: schema, to: .schema(other), root: .state, toleratesOtherKinds: true)
  }

  /// The names of what a translation drops of the fields that a former schema did not have.
  @_optimize(size)
  fileprivate func names(lostBy translation: Translation, after former: Schema) -> [String] {
    if translation.dropped.isEmpty { return [] }
    let unknown = names(unknownTo: former)
    return translation.dropped.filter { name in
      unknown.contains { name.hasPrefix($0 + ".") || name.hasPrefix($0 + "[") }
    }
  }
}
