import CBOR
public import Lockstep
import Values

/// The patch of an action, worked out before it was performed: some values that took the places of
/// others. It holds for the same values at the same places, whatever has changed elsewhere. It is empty
/// if that changes nothing.
final class ForeseenEdit: Sendable {
  /// The old values.
  let notes: EditNotes.Notes
  /// The tree with the new ones.
  let root: Value
  let patch: [UInt8]
  /// What the action works out from a value of its own and the one at its path, if that takes long.
  let finding: Finding?

  /// It holds for the same two values.
  struct Finding: Sendable {
    enum Result: Sendable {
      /// What a merge makes of them.
      case merged(Value)
      /// A test has found them equal.
      case equal
    }

    let operand: Value
    let found: Value?
    let result: Result
  }

  init(_ notes: EditNotes.Notes, in root: Value, patch: [UInt8], _ finding: Finding? = nil) {
    self.notes = notes
    self.root = root
    self.patch = patch
    self.finding = finding
  }

  /// What has been worked out from two values; nil if these are others. O(log n), because such values
  /// share what is large in them.
  func finding(from operand: Value, and found: Value?) -> Finding.Result? {
    guard let finding, operand.isSame(as: finding.operand), Self.isSame(found, finding.found) else {
      return nil
    }
    return finding.result
  }

  /// Whether a transaction is this one: the same places are noted, and hold and held the same values.
  /// O(the places and their paths), because such values share what is large in them.
  func isTransaction(_ notes: EditNotes.Notes, in root: Value) -> Bool {
    switch (notes, self.notes) {
    case (.one(let keys, let old, _), .one(let known, let formerly, _)):
      keys == known && Self.isSame(old, formerly)
        && Self.isSame(root.noted(keys), self.root.noted(keys))
    case (.many(let node), .many(let known)): Self.isSame(node, root, known, self.root)
    case (.none, _), (.one, _), (.many, _): false
    }
  }

  private static func isSame(_ first: Value?, _ second: Value?) -> Bool {
    switch (first, second) {
    case (nil, nil): true
    case (let first?, let second?): first.isSame(as: second)
    case (nil, _?), (_?, nil): false
    }
  }

  private static func isSame(
    _ node: EditNotes.Node, _ value: Value?, _ known: EditNotes.Node, _ other: Value?
  ) -> Bool {
    switch (node, known) {
    case (.whole(let old), .whole(let formerly)):
      return isSame(old, formerly) && isSame(value, other)
    case (.inside(let children), .inside(let others)):
      guard children.count == others.count else { return false }
      // Two edits of an array may become one splice, with the elements between them.
      if case .array? = value, children.count > 1 { return false }
      return children.allSatisfy { key, child in
        others[key].map { isSame(child, value?.child(key), $0, other?.child(key)) } ?? false
      }
    case (.whole, .inside), (.inside, .whole): return false
    }
  }
}

extension DocumentFeature {
  /// What takes long about an action is the difference of what it puts somewhere from what is there:
  /// both stay the same values until the action is performed, unless another one comes between.
  public func foresee(_ action: DocumentAction, in state: Document) -> Foresight? {
    var finding: ForeseenEdit.Finding?
    switch action {
    case .set, .insert, .replace, .move, .copy, .append: break
    case .merge(let path, let operand), .test(let path, let operand):
      let found = state.root.value(at: path)
      var copy = state
      guard (try? reduce(into: &copy, action: action)) != nil else { return nil }
      if case .merge = action, let merged = copy.root.value(at: path) {
        finding = .init(operand: operand, found: found, result: .merged(merged))
      } else {
        finding = .init(operand: operand, found: found, result: .equal)
      }
    case .transaction: if action.makesValues { return nil }
    case .remove, .increment: return nil
    }
    var copy = state
    // With the finding, a merge notes what it does as it will when it is performed.
    copy.foreseen = finding.map { ForeseenEdit(.none, in: state.root, patch: [], $0) }
    guard (try? reduce(into: &copy, action: action)) != nil else { return nil }
    let edit = copy.settleForeseen(with: finding)
    return Foresight(patch: edit.patch, hint: edit)
  }

  public func recall(_ foresight: Foresight?, in state: inout Document) {
    state.foreseen = foresight?.hint as? ForeseenEdit
  }

  /// A short action takes long if it moves or copies a large value, or puts a container, however small,
  /// in the place of one: the patch names every entry that goes.
  @inline(__always)
  public func takesLong(_ action: DocumentAction, in state: Document) -> Bool {
    // Patterns without a name for the value: it would be copied.
    switch action {
    case .increment, .remove, .test, .merge, .append: false
    case .set(_, .object), .set(_, .array), .insert(_, .object), .insert(_, .array),
      .replace(_, .object), .replace(_, .array), .move, .copy, .transaction:
      action.touchesMuch(of: state.root)
    case .set, .insert, .replace: false
    }
  }
}

extension DocumentAction {
  /// Whether what it puts somewhere is made when it is performed: it would be compared whole with what
  /// was foreseen. A merge by itself is not: see `Finding`. O(its actions).
  fileprivate var makesValues: Bool {
    switch self {
    case .merge: true
    case .transaction(let parts): parts.contains { $0.makesValues }
    case .set, .remove, .increment, .append, .insert, .move, .copy, .test, .replace: false
    }
  }

  /// Whether the values that it replaces, moves or copies are large together. Of a long transaction
  /// only the beginning is looked at. O(1).
  @inline(never)
  fileprivate func touchesMuch(of root: Value) -> Bool {
    var (values, actions) = (Remains.worthwhile, 64)
    return touchesMuch(of: root, &values, &actions)
  }

  private func touchesMuch(of root: Value, _ values: inout Int, _ actions: inout Int) -> Bool {
    actions -= 1
    switch self {
    case .set(let path, _), .insert(let path, _), .replace(let path, _):
      return root.value(at: path)?.holdsMore(than: &values) ?? false
    case .move(let from, let to), .copy(let from, let to):
      return root.value(at: from)?.holdsMore(than: &values) ?? false
        || root.value(at: to)?.holdsMore(than: &values) ?? false
    case .transaction(let parts):
      for part in parts where actions > 0 && part.touchesMuch(of: root, &values, &actions) {
        return true
      }
      return false
    case .merge, .remove, .increment, .append, .test: return false
    }
  }
}

extension Document {
  /// End the transaction with the patch that was foreseen. Nil if this is another.
  @inline(never)
  mutating func settleAsForeseen(into encoder: inout CBOREncoder) -> Bool? {
    guard let foreseen, foreseen.isTransaction(notes.notes, in: root) else { return nil }
    // The bytes are shared if they are the first.
    if encoder.bytes.isEmpty {
      encoder.bytes = foreseen.patch
    } else {
      encoder.bytes += foreseen.patch
    }
    forgetNotes()
    return !foreseen.patch.isEmpty
  }

  /// End the transaction. Returns what it did.
  fileprivate mutating func settleForeseen(with finding: ForeseenEdit.Finding?) -> ForeseenEdit {
    let done = notes.notes
    foreseen = nil
    var encoder = CBOREncoder()
    _ = settle(into: &encoder)
    // Without the room that the encoder has for more.
    let patch = encoder.bytes.withUnsafeBytes { [UInt8]($0) }
    return ForeseenEdit(done, in: root, patch: patch, finding)
  }
}
