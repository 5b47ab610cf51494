import CBOR
public import Lockstep
import Values

/// What an action does, worked out before it is performed: it holds as long as others change none of the
/// places that it touches.
final class ForeseenEdit: Sendable {
  /// What it does to `ground`.
  private enum Outcome: Sendable {
    case edited(Value, notes: EditNotes.Notes, patch: [UInt8])
    case rejected(Rejection)
  }

  private let action: DocumentAction
  private let ground: Value
  private let places: TouchedPlaces
  private let outcome: Outcome

  private init(
    _ action: DocumentAction, on ground: Value, _ places: TouchedPlaces, _ outcome: Outcome
  ) {
    self.action = action
    self.ground = ground
    self.places = places
    self.outcome = outcome
  }

  /// Work out what an action does to a tree. O(the action, and what it replaces, moves or copies).
  init(of action: DocumentAction, to document: Document, by feature: DocumentFeature) {
    var copy = document
    let (places, rejection) = feature.tryOut(action, on: &copy)
    self.action = action
    ground = document.root
    self.places = places
    if let rejection {
      outcome = .rejected(rejection)
    } else {
      let notes = copy.notes.notes
      let patch = copy.settled()
      outcome = .edited(copy.root, notes: notes, patch: patch)
    }
  }

  /// The patch that it makes; empty if it changes nothing.
  var patch: [UInt8] {
    if case .edited(_, _, let patch) = outcome { patch } else { [] }
  }

  /// The same for the tree that this one has become; nil if it does not hold any more, or if more than
  /// that many entries had to be looked at to find out. O(the changes of others · log n).
  func carried(to present: Value, looking limit: Int) -> ForeseenEdit? {
    var (left, carried) = (limit, outcome)
    do throws(TouchedPlaces.Overlap) {
      switch outcome {
      case .edited(let root, let notes, let patch):
        let root = try places.carry(root, from: ground, to: present, looking: &left)
        carried = .edited(root, notes: notes, patch: patch)
      case .rejected: _ = try places.carry(ground, from: ground, to: present, looking: &left)
      }
    } catch {
      return nil
    }
    return ForeseenEdit(action, on: present, places, carried)
  }

  /// Whether an action on the tree that this one has become may change what this edit touches. O(what
  /// performing it takes).
  func meets(_ action: DocumentAction, on document: Document, by feature: DocumentFeature) -> Bool {
    var copy = document
    return places.meet(feature.tryOut(action, on: &copy).0)
  }

  /// Its part at paths of which this is true, to ask what `meets` it; nil if that is all of it. O(the
  /// places that it touches).
  func part(at isIncluded: (Path) -> Bool) -> ForeseenEdit? {
    places.part(at: isIncluded).map { ForeseenEdit(action, on: ground, $0, outcome) }
  }

  /// Do to a document what the action does. Returns false, and does nothing, if this is another action or
  /// another tree. O(1) for a transaction, else O(its path).
  func perform(_ action: DocumentAction, on document: inout Document) throws(Rejection) -> Bool {
    guard document.notes.isEmpty, document.root.isSame(as: ground),
      action.isShared(with: self.action)
    else { return false }
    switch outcome {
    case .rejected(let rejection): throw rejection
    case .edited(let root, let notes, _):
      document.root = root
      document.notes.notes = notes
      return true
    }
  }

  /// The patch of a transaction, if that was this edit and nothing else.
  func patch(of document: Document) -> [UInt8]? {
    guard case .edited(let root, _, let patch) = outcome, root.isSame(as: document.root) else {
      return nil
    }
    return patch
  }
}

extension DocumentFeature {
  /// What takes long about an action is to perform it, if it has many parts, and to find the difference
  /// of what it puts somewhere from what is there. A removal by itself does neither.
  public func foresee(_ action: DocumentAction, in state: Document) -> Foresight? {
    switch action {
    case _ where isStub: nil
    case .remove, .increment: nil
    case .set, .insert, .replace, .move, .copy, .append, .merge, .test, .transaction:
      Foresight(ForeseenEdit(of: action, to: state, by: self))
    }
  }

  public func foresee(
    _ action: DocumentAction, in state: Document, renewing former: Foresight
  ) -> Foresight? {
    let edit = former.hint as? ForeseenEdit
    return edit?.carried(to: state.root, looking: .max).map { Foresight($0) }
      ?? foresee(action, in: state)
  }

  /// The most entries that are looked at on the loop: those of some hundred changes, in half a
  /// millisecond.
  private static var mostLookedAt: Int { 16 << 10 }

  public func mayChange(
    _ foresight: Foresight, by action: DocumentAction, in state: Document
  ) -> Bool {
    guard let edit = foresight.hint as? ForeseenEdit else { return true }
    return edit.meets(action, on: state, by: self)
  }

  public func part(of foresight: Foresight, at isIncluded: (Path) -> Bool) -> Foresight? {
    (foresight.hint as? ForeseenEdit)?.part(at: isIncluded).map { Foresight($0) }
  }

  public func recall(_ foresight: Foresight?, in state: inout Document) -> Bool {
    let edit = foresight?.hint as? ForeseenEdit
    state.foreseen = edit?.carried(to: state.root, looking: Self.mostLookedAt)
    return (state.foreseen == nil) == (edit == nil)
  }

  /// A short action takes long if it has many parts, if it moves or copies a large value, or puts a
  /// container, however small, in the place of one: the patch names every entry that goes.
  @inline(__always)
  public func takesLong(_ action: DocumentAction, in state: Document) -> Bool {
    // Patterns without a name for the value: it would be copied.
    switch action {
    case .increment, .remove, .test, .merge, .append: false
    case .set(_, .object), .set(_, .array), .insert(_, .object), .insert(_, .array),
      .replace(_, .object), .replace(_, .array), .move, .copy, .transaction:
      !isStub && action.touchesMuch(of: state.root)
    case .set, .insert, .replace: false
    }
  }
}

extension Foresight {
  fileprivate init(_ edit: ForeseenEdit) { self.init(patch: edit.patch, hint: edit) }
}

extension DocumentAction {
  /// Whether both are the same action, decoded once: a transaction is not compared action by action.
  fileprivate func isShared(with other: DocumentAction) -> Bool {
    switch (self, other) {
    case (.transaction(let first), .transaction(let second)):
      // Only the addresses are compared, of arrays that both exist: equal ones are of one storage.
      first.count == second.count
        && first.withUnsafeBufferPointer { first in
          second.withUnsafeBufferPointer { first.baseAddress == $0.baseAddress }
        }
    case (.set(let path, let value), .set(let other, let same)),
      (.merge(let path, let value), .merge(let other, let same)),
      (.increment(let path, let value), .increment(let other, let same)),
      (.append(let path, let value), .append(let other, let same)),
      (.insert(let path, let value), .insert(let other, let same)),
      (.test(let path, let value), .test(let other, let same)),
      (.replace(let path, let value), .replace(let other, let same)):
      path == other && value.isSame(as: same)
    case (.remove(let path), .remove(let other)): path == other
    case (.move(let source, let target), .move(let from, let to)),
      (.copy(let source, let target), .copy(let from, let to)):
      source == from && target == to
    default: false
    }
  }

  /// How many actions a short transaction may have, all that are inside counted, until it takes long:
  /// half a millisecond's worth.
  private static var mostShortActions: Int { 256 }

  /// Of how many of them the values are looked at.
  private static var mostExamined: Int { 64 }

  /// Whether there are many actions, or the values that they replace, move or copy are large together.
  /// O(1).
  @inline(never)
  fileprivate func touchesMuch(of root: Value) -> Bool {
    var (values, actions) = (Remains.worthwhile, Self.mostShortActions)
    return touchesMuch(of: root, &values, &actions)
  }

  private func touchesMuch(of root: Value, _ values: inout Int, _ actions: inout Int) -> Bool {
    actions -= 1
    if actions < 0 { return true }
    let isExamined = actions >= Self.mostShortActions - Self.mostExamined
    switch self {
    case .set(let path, _) where isExamined, .insert(let path, _) where isExamined,
      .replace(let path, _) where isExamined:
      return root.value(at: path)?.holdsMore(than: &values) ?? false
    case .move(let from, let to) where isExamined, .copy(let from, let to) where isExamined:
      return root.value(at: from)?.holdsMore(than: &values) ?? false
        || root.value(at: to)?.holdsMore(than: &values) ?? false
    case .transaction(let parts):
      return parts.contains { $0.touchesMuch(of: root, &values, &actions) }
    case .set, .insert, .replace, .move, .copy, .merge, .remove, .increment, .append, .test:
      return false
    }
  }
}

extension Document {
  /// Do what was foreseen that the action does. Returns false if that is nothing that is known.
  @inline(never)
  mutating func performForeseen(_ action: DocumentAction) throws(Rejection) -> Bool {
    try foreseen?.perform(action, on: &self) ?? false
  }

  /// End the transaction with the patch that was foreseen. Nil if it was another.
  @inline(never)
  mutating func settleAsForeseen(into encoder: inout CBOREncoder) -> Bool? {
    let patch = foreseen?.patch(of: self)
    // It is known about one transaction only.
    foreseen = nil
    guard let patch else { return nil }
    // The bytes are shared if they are the first.
    if encoder.bytes.isEmpty {
      encoder.bytes = patch
    } else {
      encoder.bytes += patch
    }
    forgetNotes()
    return !patch.isEmpty
  }

  /// End the transaction. Returns its patch, without room for more.
  fileprivate mutating func settled() -> [UInt8] {
    var encoder = CBOREncoder()
    _ = settle(into: &encoder)
    return encoder.bytes.withUnsafeBytes { [UInt8]($0) }
  }
}
