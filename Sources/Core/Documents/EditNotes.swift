import CBOR
import Values

/// What the tree was at the start of a transaction, at each place touched since.
///
/// Theory: the notes are a trie of places. A place is `whole`, with the value that stood there (nil
/// when nothing did), or `inside`: something below it was touched. Below a whole place nothing need
/// be noted, for its old value says it all. When a place is to become whole above places already
/// noted, its old value is rebuilt by undoing those on an O(1) copy.
///
/// An element of an array is noted by its index, as long as the array has not been spliced in this
/// transaction; a splice makes the array whole.
///
/// Most actions touch one place: that note is kept flat, which costs no allocation. Most of them put a
/// scalar there: the note has it, too, and to make the patch takes no second walk through the tree.
///
/// Invariant: keys are as the walk through the tree found them, `.text` for a member of an object
/// and `.integer` for an element of an array.
struct EditNotes: Sendable {
  enum Notes: Sendable {
    case none
    /// `new` is the value there now, if it is a scalar that the last edit has put there.
    case one([PathKey], old: Value?, new: Value?)
    case many(Node)
  }

  enum Node: Sendable {
    case whole(Value?)
    case inside([PathKey: Node])
  }

  var notes = Notes.none

  var isEmpty: Bool {
    guard case .none = notes else { return false }
    return true
  }

  mutating func removeAll() { notes = .none }

  /// Take what is noted, and note nothing.
  @inline(__always)
  mutating func take() -> Notes {
    var taken = Notes.none
    swap(&taken, &notes)
    return taken
  }

  /// Whether it takes long to release them (`Remains`). O(1).
  @inline(__always)
  var areLarge: Bool {
    switch notes {
    case .none: return false
    case .one(_, let old, _):
      guard let old, !old.isScalar else { return false }
      var left = Remains.worthwhile
      return old.holdsMore(than: &left)
    case .many(let node):
      var left = Remains.worthwhile
      return node.holdsMore(than: &left)
    }
  }

  /// Whether the old value of a place is known, so that it may change without another note. Call it
  /// only before such a change: it forgets the new value.
  mutating func covers(_ keys: ArraySlice<PathKey>) -> Bool {
    switch notes {
    case .none: return false
    case .one(let noted, let old, _):
      guard keys.starts(with: noted) else { return false }
      notes = .one(noted, old: old, new: nil)
      return true
    case .many(var node):
      for key in keys {
        guard case .inside(let children) = node else { return true }
        guard let child = children[key] else { return false }
        node = child
      }
      guard case .whole = node else { return false }
      return true
    }
  }

  /// Note that `old` stood at a place until now, or nothing; and that `new` stands there now, if that
  /// is known. O(depth), and what is below the place and noted already.
  @inline(__always)
  mutating func note(_ keys: [PathKey], was old: consuming Value?, is new: Value? = nil) {
    if case .none = notes {
      notes = .one(keys, old: old, new: new?.isScalar == true ? new : nil)
    } else {
      noteAnother(keys, was: old)
    }
  }

  private mutating func noteAnother(_ keys: [PathKey], was old: consuming Value?) {
    switch notes {
    case .none: notes = .one(keys, old: old, new: nil)
    case .one(let noted, let first, _): note(keys, was: old, besides: noted, was: first)
    case .many(var node):
      notes = .none
      node.note(keys[...], was: old)
      notes = .many(node)
    }
  }

  private mutating func note(
    _ keys: [PathKey], was old: consuming Value?, besides noted: [PathKey], was first: Value?
  ) {
    if keys.starts(with: noted) {
      notes = .one(noted, old: first, new: nil)
      return
    }
    var node = Node.inside([:])
    node.note(noted[...], was: first)
    node.note(keys[...], was: old)
    notes = .many(node)
  }

  /// Note that an array is about to be spliced: `element` names one of its places.
  mutating func noteArray(around element: [PathKey], was old: Value) {
    if covers(element.dropLast()) { return }
    note(Array(element.dropLast()), was: old)
  }
}

extension EditNotes.Node {
  /// As `Value.holdsMore(than:)`.
  fileprivate func holdsMore(than left: inout Int) -> Bool {
    switch self {
    case .whole(let old): return old?.holdsMore(than: &left) ?? false
    case .inside(let children):
      left -= children.count
      return left < 0 || children.values.contains { $0.holdsMore(than: &left) }
    }
  }

  mutating func note(_ keys: ArraySlice<PathKey>, was old: consuming Value?) {
    guard case .inside(var children) = self else { return }
    guard let key = keys.first else {
      // The places noted below were in a container, so there is an old value.
      if !children.isEmpty, var value = old {
        Self.undo(children, on: &value)
        old = value
      }
      self = .whole(old)
      return
    }
    self = .inside([:])
    children[key, default: .inside([:])].note(keys.dropFirst(), was: old)
    self = .inside(children)
  }
}

// MARK: Undoing

extension EditNotes {
  /// Restore `root` to its old value. O(what was touched · log n).
  func undo(on root: inout Value) {
    switch notes {
    case .none: break
    case .one(let keys, let old, _): Node.restore(old, at: keys[...], in: &root)
    case .many(.whole(let old)): root = old ?? .null
    case .many(.inside(let children)): Node.undo(children, on: &root)
    }
  }
}

extension EditNotes.Node {
  static func restore(_ old: Value?, at keys: ArraySlice<PathKey>, in value: inout Value) {
    guard let key = keys.first else {
      // Only the root comes here, and it is never absent.
      value = old ?? .null
      return
    }
    if keys.count == 1 {
      value.restore(old, at: key)
    } else {
      value.undoInside(key) { restore(old, at: keys.dropFirst(), in: &$0) }
    }
  }

  static func undo(_ children: [PathKey: EditNotes.Node], on value: inout Value) {
    for (key, child) in children {
      switch child {
      case .whole(let old): value.restore(old, at: key)
      case .inside(let children): value.undoInside(key) { undo(children, on: &$0) }
      }
    }
  }
}

extension Value {
  fileprivate var isScalar: Bool {
    switch self {
    case .object, .array: false
    case .null, .bool, .integer, .unsigned, .double, .text, .bytes: true
    }
  }

  /// Restore the old value at a noted place of this container.
  fileprivate mutating func restore(_ old: Value?, at key: PathKey) {
    switch (self, key) {
    case (.object(var entries), .text(let name)):
      self = .null
      if let old {
        entries.updateValue(old, forKey: name)
      } else {
        entries.removeValue(forKey: name)
      }
      self = .object(entries)
    case (.array(var elements), .integer(let index)):
      // An element that was absent is noted by its array.
      guard let old else { return }
      self = .null
      elements.modifyElement(at: Int(index)) { $0 = old }
      self = .array(elements)
    default: preconditionFailure("A note names a place that the value does not have.")
    }
  }

  fileprivate mutating func undoInside(_ key: PathKey, _ body: (inout Value) -> Void) {
    switch (self, key) {
    case (.object(var entries), .text(let name)):
      self = .null
      entries.modifyValue(forKey: name, body)
      self = .object(entries)
    case (.array(var elements), .integer(let index)):
      self = .null
      elements.modifyElement(at: Int(index), body)
      self = .array(elements)
    default: preconditionFailure("A note names a place that the value does not have.")
    }
  }
}
