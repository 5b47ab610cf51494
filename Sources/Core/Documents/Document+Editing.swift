public import Lockstep
public import Values

/// Edits. Each costs O(depth · log n), plus the size of a value from outside, which adopts the
/// document's seed. Each notes the old value at the place that it touches.
extension Document {
  /// Put a value at a path whose parent exists. An index equal to the count of its array, or `-`,
  /// appends. The empty path replaces the whole document.
  public mutating func set(_ value: Value, at path: Path) throws(Rejection) {
    try put(value.adopting(seed), at: path, .set)
  }

  /// Insert a value as RFC 6902, section 4.1 (`add`): before the element of an array, or as the
  /// member of an object, replacing one of that name.
  public mutating func insert(_ value: Value, at path: Path) throws(Rejection) {
    try put(value.adopting(seed), at: path, .insert)
  }

  /// Replace an existing value as RFC 6902, section 4.3.
  public mutating func replace(_ value: Value, at path: Path) throws(Rejection) {
    try put(value.adopting(seed), at: path, .replace)
  }

  /// Remove the value at a path and return it (RFC 6902, section 4.2). The whole document cannot
  /// be removed: it always is some value.
  @discardableResult
  public mutating func remove(at path: Path) throws(Rejection) -> Value {
    var keys = path.keys
    guard !keys.isEmpty else {
      throw Rejection(
        .badPath, "the whole document cannot be removed; replace it by null or {}", at: path)
    }
    return try root.descend(&keys, &notes, to: keys.count - 1) {
      (parent, keys, notes) throws(Rejection) in
      try parent.removeChild(&keys, &notes)
    }
  }

  /// Append a value to the array at a path. A member that is absent counts as an empty array.
  public mutating func append(_ value: Value, at path: Path) throws(Rejection) {
    let seed = seed
    let value = value.adopting(seed)
    try modify(at: path, ifAbsent: .success(Value.array([value]).adopting(seed))) {
      (place, keys, notes) throws(Rejection) in
      guard case .array(var elements) = place else { throw .notArray(place, at: keys) }
      if !notes.covers(keys[...]) { notes.note(keys, was: place) }
      place = .null
      elements.append(value)
      place = .array(elements)
    }
  }

  /// Add a number to the number at a path. A member that is absent counts as 0.
  ///
  /// Integers are exact over 64 bits, of either sign; a double on either side makes the sum one.
  public mutating func increment(at path: Path, by amount: Value) throws(Rejection) {
    guard amount.isNumber else {
      throw Rejection(
        .wrongType, "cannot add \(amount.summary): it is a \(amount.kind), not a number", at: path)
    }
    func sum() -> Result<Value, Rejection> {
      Result { () throws(Rejection) in try Value.sum(.integer(0), amount, at: path) }
    }
    try modify(at: path, ifAbsent: sum()) { (place, keys, notes) throws(Rejection) in
      // The usual case, in which no value has to be copied.
      if case .integer(let old) = place, case .integer(let more) = amount {
        let (sum, overflows) = old.addingReportingOverflow(more)
        if !overflows {
          place = .integer(sum)
          return notes.note(keys, was: .integer(old), is: .integer(sum))
        }
      }
      guard place.isNumber else { throw .notNumber(place, at: keys) }
      let old = place
      place = try Value.sum(old, amount, at: path)
      notes.note(keys, was: old, is: place)
    }
  }

  /// Change the value at a path by a closure. When it holds containers, the first change of each
  /// copies a path of it, because its old value is held until the transaction ends.
  public mutating func modify<R>(
    at path: Path, _ body: (inout Value) throws(Rejection) -> R
  ) throws(Rejection) -> R {
    var keys = path.keys
    let seed = seed
    return try root.descend(&keys, &notes, to: keys.count) {
      (place, keys, notes) throws(Rejection) in
      if !notes.covers(keys[...]) { notes.note(keys, was: place) }
      defer { place.adopt(seed: seed) }
      return try body(&place)
    }
  }

  /// Move a value as RFC 6902, section 4.4: not into itself.
  public mutating func move(from source: Path, to target: Path) throws(Rejection) {
    let (from, to) = (root.resolve(source).path, root.resolve(target).path)
    if from == to {
      _ = try existing(at: source)
      return
    }
    if from.leads(to: to) {
      throw Rejection(
        .badPath, "cannot move \(from.place) to \(to.place), which is inside it", at: target)
    }
    let value = try remove(at: from)
    try put(value, at: target, .insert)
  }

  /// Copy a value as RFC 6902, section 4.5. Both share storage until one changes.
  public mutating func copy(from source: Path, to target: Path) throws(Rejection) {
    try put(existing(at: source), at: target, .insert)
  }

  /// Throw unless the value at a path equals this one as RFC 6902, section 4.6, compares: numbers
  /// by their value, text by its code points, objects without order. The rejection names the first
  /// difference.
  public func test(_ value: Value, at path: Path) throws(Rejection) {
    let found = try existing(at: path)
    if let difference = Difference(expected: value, found: found) {
      throw Rejection(.testFailed, difference.sentence(testing: path), at: path)
    }
  }

  /// The value at a path, or the rejection that names how far the path exists.
  public func existing(at path: Path) throws(Rejection) -> Value {
    if let value = root.value(at: path) { return value }
    // The walk finds out what is wrong. It changes only a copy, which is discarded.
    var (copy, keys, notes) = (root, path.keys, EditNotes())
    return try copy.descend(&keys, &notes, to: keys.count) { value, _, _ in value }
  }
}

// MARK: Steps

extension Document {
  enum PutRule {
    case set, insert, replace
    /// As `set`, but in an array the element must exist.
    case merge
  }

  mutating func put(_ value: Value, at path: Path, _ rule: PutRule) throws(Rejection) {
    var keys = path.keys
    guard !keys.isEmpty else {
      notes.note(keys, was: root)
      root = value
      return
    }
    try root.descend(&keys, &notes, to: keys.count - 1) {
      (parent, keys, notes) throws(Rejection) in
      try parent.putChild(value, rule, &keys, &notes)
    }
  }

  /// Change the value at a path in place, or add the absent member to its object.
  private mutating func modify(
    at path: Path, ifAbsent value: @autoclosure () -> Result<Value, Rejection>,
    _ body: (inout Value, [PathKey], inout EditNotes) throws(Rejection) -> Void
  ) throws(Rejection) {
    var keys = path.keys
    guard !keys.isEmpty else { return try body(&root, keys, &notes) }
    let last = keys.count - 1
    try root.descend(&keys, &notes, to: last) { (parent, keys, notes) throws(Rejection) in
      let done: Void? = try parent.modifyChild(&keys, &notes, at: last) {
        (place, keys, notes) throws(Rejection) in
        try body(&place, keys, &notes)
      }
      if done == nil { try parent.putChild(value().get(), .set, &keys, &notes) }
    }
  }
}

extension Value {
  /// The value with every collection inside hashing with `seed`.
  func adopting(_ seed: HashSeed) -> Value {
    var value = self
    value.adopt(seed: seed)
    return value
  }

  /// Put the child that the last key names into this container.
  fileprivate mutating func putChild(
    _ value: Value, _ rule: Document.PutRule, _ keys: inout [PathKey], _ notes: inout EditNotes
  ) throws(Rejection) {
    let last = keys.count - 1
    switch self {
    case .object(var entries):
      let name = try Rejection.memberName(keys, last)
      if rule == .replace && !entries.contains(name) { throw .missing(keys, last) }
      self = .null
      let old = entries.updateValue(value, forKey: name)
      self = .object(entries)
      notes.note(keys, was: old, is: value)
    case .array(var elements):
      let index = try Self.resolveIndex(&keys, last, count: elements.count)
      if rule == .insert || rule == .set && index == elements.count {
        notes.noteArray(around: keys, was: self)
        self = .null
        elements.insert(value, at: index)
        self = .array(elements)
        return
      }
      guard index < elements.count else { throw .outside(keys, last, count: elements.count) }
      self = .null
      let old = elements.modifyElement(at: index) { element in
        let old = element
        element = value
        return old
      }
      self = .array(elements)
      notes.note(keys, was: old, is: value)
    case .null, .bool, .integer, .unsigned, .double, .text, .bytes:
      throw .noMembers(self, keys, last)
    }
  }

  /// Remove the child that the last key names from this container.
  fileprivate mutating func removeChild(
    _ keys: inout [PathKey], _ notes: inout EditNotes
  ) throws(Rejection) -> Value {
    let last = keys.count - 1
    switch self {
    case .object(var entries):
      let name = try Rejection.memberName(keys, last)
      self = .null
      let removed = entries.removeValue(forKey: name)
      self = .object(entries)
      guard let removed else { throw .missing(keys, last) }
      notes.note(keys, was: removed)
      return removed
    case .array(var elements):
      let index = try Self.resolveIndex(&keys, last, count: elements.count)
      guard index < elements.count else { throw .outside(keys, last, count: elements.count) }
      notes.noteArray(around: keys, was: self)
      self = .null
      let removed = elements.remove(at: index)
      self = .array(elements)
      return removed
    case .null, .bool, .integer, .unsigned, .double, .text, .bytes:
      throw .noMembers(self, keys, last)
    }
  }
}

extension Path {
  /// The path for a sentence.
  var place: String { keys.isEmpty ? "the whole document" : pointer.truncated }
}
