import Values

/// The places of a tree that an action reads or changes: what it does depends on nothing else.
///
/// Theory: between the time at which an action is worked out and the time at which it is performed,
/// others change the tree. As long as they change none of these places, nor what kind of container leads
/// to one, the action does the same there; and what they have changed elsewhere is carried into the tree
/// that it made, part by part, past all that both share. So that takes as long as there are changes, and
/// not as long as the action takes. (It is how optimistic concurrency control validates a transaction:
/// Kung and Robinson, 1981.)
///
/// The places are a trie, as those of `EditNotes` are. The keys are as the walk through the tree finds
/// them. To put an element into an array, or to take one out, touches the whole array.
struct TouchedPlaces: Sendable {
  private var root = EditNotes.Node.inside([:])

  /// Why what an action did to one tree does not say what it does to another.
  enum Overlap: Error {
    /// Others have changed a place that it touches, or may have.
    case touched
    /// They have changed more than was to be looked at.
    case tooMuch
  }

  /// Note the places of an action that is about to be performed on a tree, without those of actions
  /// inside it. O(its paths).
  mutating func note(_ action: DocumentAction, in tree: Value) {
    switch action {
    case .increment(let path, _), .append(let path, _), .set(let path, _), .test(let path, _),
      .replace(let path, _):
      note(path, in: tree)
    case .merge(let path, let patch):
      var (keys, place) = self.place(path, in: tree)
      note(patch, into: place, at: &keys)
    case .remove(let path), .insert(let path, _): note(path, in: tree, splicing: true)
    case .copy(let source, let target):
      note(source, in: tree)
      note(target, in: tree, splicing: true)
    case .move(let source, let target):
      note(source, in: tree, splicing: true)
      note(target, in: tree, splicing: true)
    case .transaction: break
    }
  }

  private mutating func note(_ path: Path, in tree: Value, splicing: Bool = false) {
    root.note(place(path, in: tree, splicing: splicing).keys[...], was: nil)
  }

  /// The keys of the place that a path leads to, and its value; of the first place that is absent, if
  /// there is one: nothing can be below it. So there are no more keys than the tree has levels, and one.
  private func place(
    _ path: Path, in tree: Value, splicing: Bool = false
  ) -> (keys: [PathKey], value: Value?) {
    var keys = path.keys
    var place = tree
    for depth in keys.indices {
      if case .array(let elements) = place {
        let isSplice = splicing && depth == keys.count - 1
        guard !isSplice, let index = keys[depth].arrayIndex, index < elements.count else {
          keys.removeSubrange(depth...)
          return (keys, place)
        }
        keys[depth] = .integer(Int64(index))
      }
      guard let next = place.child(keys[depth]) else {
        keys.removeSubrange((depth + 1)...)
        return (keys, nil)
      }
      place = next
    }
    return (keys, place)
  }

  /// Note what a merge of `patch` into a value touches: members, as deep as both are objects.
  private mutating func note(_ patch: Value, into value: Value?, at keys: inout [PathKey]) {
    guard case .object(let changes) = patch, !changes.isEmpty, case .object(let members)? = value
    else { return root.note(keys[...], was: nil) }
    for (name, change) in changes {
      keys.append(.text(name))
      note(change, into: members[name], at: &keys)
      keys.removeLast()
    }
  }

  /// Whether an action that touches other places may change these, so that what was made of them could not
  /// be carried. O(the other places).
  func meet(_ others: TouchedPlaces) -> Bool { root.meets(others.root) }

  /// The places of which this is true; nil if it is true of all. O(the places).
  func part(at isIncluded: (Path) -> Bool) -> TouchedPlaces? {
    var (part, place) = (self, Path())
    if part.root.keep(isIncluded, at: &place) { return nil }
    if case .whole = part.root { part.root = .inside([:]) }
    return part
  }

  /// What an action makes of `present`, if it has made `made` of `ground`. `left` is how many entries
  /// may be looked at, and then how many are left; to carry one counts as 16. O(what differs between
  /// `ground` and `present` · log n), if they are of one lineage.
  func carry(
    _ made: Value, from ground: Value, to present: Value, looking left: inout Int
  ) throws(Overlap) -> Value {
    try root.carry(made, from: ground, to: present, &left)
  }
}

extension EditNotes.Node {
  fileprivate func meets(_ other: Self) -> Bool {
    if touchesNothing { return false }
    guard case .inside(let touched) = self, case .inside(let others) = other else { return true }
    return others.contains { key, child in
      // Into an array nothing is carried but around one touched element.
      if touched.count > 1, case .integer = key { return true }
      return touched[key]?.meets(child) ?? false
    }
  }

  /// Whether no place is left, which is so only in a part, and at the root.
  private var touchesNothing: Bool {
    guard case .inside(let children) = self else { return false }
    return children.isEmpty
  }

  /// Remove the places of which this is not true, but for the root itself. Returns whether all are left.
  fileprivate mutating func keep(_ isIncluded: (Path) -> Bool, at place: inout Path) -> Bool {
    guard case .inside(let children) = self else { return isIncluded(place) }
    var (kept, keepsAll) = (children, true)
    for (key, child) in children {
      var child = child
      place.keys.append(key)
      let keepsChild = child.keep(isIncluded, at: &place)
      place.keys.removeLast()
      if keepsChild { continue }
      keepsAll = false
      if case .inside(let rest) = child, !rest.isEmpty {
        kept[key] = child
      } else {
        kept[key] = nil
      }
    }
    self = .inside(kept)
    return keepsAll
  }

  fileprivate func carry(
    _ made: Value, from ground: Value, to present: Value, _ left: inout Int
  ) throws(TouchedPlaces.Overlap) -> Value {
    if present.isShared(with: ground) { return made }
    if touchesNothing { return present }
    guard case .inside(let touched) = self else { throw .touched }
    switch (ground, present, made) {
    case (.object(let ground), .object(let present), .object(let made)):
      return .object(try Self.carry(made, from: ground, to: present, touched, &left))
    case (.array(let ground), .array(var present), .array(let made)):
      // Two edits of an array may become one splice, with the elements between them.
      guard touched.count == 1, case (.integer(let key), let child)? = touched.first,
        let index = Int(exactly: key), index >= 0,
        index < min(ground.count, present.count, made.count)
      else { throw .touched }
      let element = try child.carry(
        made[index], from: ground[index], to: present[index], &left)
      present.modifyElement(at: index) { $0 = element }
      return .array(present)
    default: throw .touched
    }
  }

  private static func carry(
    _ made: TrieMap<String, Value>, from ground: TrieMap<String, Value>,
    to present: TrieMap<String, Value>, _ touched: [PathKey: EditNotes.Node], _ left: inout Int
  ) throws(TouchedPlaces.Overlap) -> TrieMap<String, Value> {
    var (made, overlap) = (made, TouchedPlaces.Overlap?.none)
    present.forEachCandidate(from: ground) { name, old, new in
      left -= 1
      if left < 0 { overlap = .tooMuch }
      if overlap != nil { return false }
      if let old, let new, new.isShared(with: old) { return true }
      left -= 15
      do throws(TouchedPlaces.Overlap) {
        guard let child = touched[.text(name)] else {
          if let new {
            made.updateValue(new, forKey: name)
          } else {
            made.removeValue(forKey: name)
          }
          return true
        }
        guard let old, let new, let value = made[name] else { throw .touched }
        let carried = try child.carry(value, from: old, to: new, &left)
        made.updateValue(carried, forKey: name)
        return true
      } catch {
        overlap = error
        return false
      }
    }
    if let overlap { throw overlap }
    return made
  }
}

extension Value {
  /// Whether both are the same without a look inside: scalars, or containers that share their storage.
  fileprivate func isShared(with other: Value) -> Bool {
    switch (self, other) {
    case (.object(let first), .object(let second)): first.isIdentical(to: second)
    case (.array(let first), .array(let second)): first.isIdentical(to: second)
    default: isSame(as: other)
    }
  }
}
