import CBOR
import Values

/// The scopes by their paths, as a tree of keys: finds the scopes that a patch changes, and how, in one
/// pass over the patch.
///
/// A scope without a value is not changed by the loss of a value above it: so that an action need not
/// look at each of thousands of these, each node counts the scopes that have one, and keeps its children
/// without any apart.
struct ScopeTree: Sendable {
  /// The scopes of this path: one for each view of it.
  private var scopes: [UInt64] = []
  /// Those with a scope that has a value, and the others.
  private var children = ScopeTreeChildren()
  private var vacant = ScopeTreeChildren()
  /// How many of the scopes of this path have a value, and how many of those below it.
  private var presentHere: Int32 = 0
  private var presentBelow: Int32 = 0

  fileprivate var isEmpty: Bool { scopes.isEmpty && children.isEmpty && vacant.isEmpty }
  fileprivate var present: Int32 { presentHere + presentBelow }

  mutating func insert(_ id: UInt64, at keys: ArraySlice<PathKey>, isPresent: Bool) {
    guard let first = keys.first else {
      scopes.append(id)
      if isPresent { presentHere += 1 }
      return
    }
    let (key, rest) = (EncodedKey(first), keys.dropFirst())
    if isPresent {
      presentBelow += 1
      if let child = vacant.remove(key) { children.insert(key) { $0 = child } }
      children.insert(key) { $0.insert(id, at: rest, isPresent: true) }
    } else if case .absent = children.change(
      key, { $0.insert(id, at: rest, isPresent: false) }, staysIf: { _ in true })
    {
      vacant.insert(key) { $0.insert(id, at: rest, isPresent: false) }
    }
  }

  mutating func remove(_ id: UInt64, at keys: ArraySlice<PathKey>, wasPresent: Bool) {
    guard let key = keys.first else {
      scopes.removeAll { $0 == id }
      if wasPresent { presentHere -= 1 }
      return
    }
    if wasPresent { presentBelow -= 1 }
    change(EncodedKey(key)) {
      $0.remove(id, at: keys.dropFirst(), wasPresent: wasPresent)
    }
  }

  /// Note that a scope of this path has a value now, or has none any more.
  mutating func note(isPresent: Bool, at keys: ArraySlice<PathKey>) {
    let difference: Int32 = isPresent ? 1 : -1
    guard let key = keys.first else { return presentHere += difference }
    presentBelow += difference
    change(EncodedKey(key)) { $0.note(isPresent: isPresent, at: keys.dropFirst()) }
  }

  /// Change the child that there is of a key: it is afterwards where it belongs, and nowhere if it is empty.
  private mutating func change(_ key: EncodedKey, _ body: (inout ScopeTree) -> Void) {
    switch children.change(key, body, staysIf: { $0.present > 0 }) {
    case .stayed: return
    case .left(let child): if !child.isEmpty { vacant.insert(key) { $0 = child } }
    case .absent:
      let change = vacant.change(key, body, staysIf: { $0.present == 0 && !$0.isEmpty })
      if case .left(let child) = change, !child.isEmpty { children.insert(key) { $0 = child } }
    }
  }

  /// Find the scopes that a patch of the whole state changes, and how: what `Path.projection` says of the
  /// path of each, and those of which it says `untouched` left out, and those that lose a value that they
  /// do not have. O(bytes of the patch, and `ChangedScopes.looked`).
  func find(_ patch: UnsafeRawBufferPointer, into found: inout ChangedScopes) {
    found.add(scopes, .patch(0..<patch.count))
    if children.isEmpty, vacant.isEmpty { return }
    var decoder = CBORDecoder(patch)
    // The patch is our own: all of it can be read.
    try? visitChildren(&decoder, isValue: false, &found)
  }

  /// Read the item that is next, and visit the scopes below this path, whose patch it is or whose value.
  private func visitChildren(
    _ decoder: inout CBORDecoder, isValue: Bool, _ found: inout ChangedScopes
  ) throws(CBORError) {
    if children.isEmpty, vacant.isEmpty { return try decoder.skip() }
    guard !isValue, try decoder.isArrayOfOneNext() else {
      return try visitEntries(&decoder, isValue: isValue, &found)
    }
    _ = try decoder.array()
    try visitEntries(&decoder, isValue: true, &found)
    decoder.close()
  }

  private func visitEntries(
    _ decoder: inout CBORDecoder, isValue: Bool, _ found: inout ChangedScopes
  ) throws(CBORError) {
    guard try decoder.peekMajor() == .map else {
      visitAbsent(presentBelow, except: [], &found)
      return try decoder.skip()
    }
    // In a value, what is not there is absent; in a patch it is as it was.
    var (keys, others) = (Set<EncodedKey>(), presentBelow)
    for _ in 0..<(try decoder.map()) {
      let key = EncodedKey(try decoder.rawItem())
      let isThere = try children.visit(key) { child throws(CBORError) in
        if isValue, keys.insert(key).inserted { others -= child.present }
        try child.visit(&decoder, isValue: isValue, &found)
      }
      if isThere { continue }
      let isVacant = try vacant.visit(key) { child throws(CBORError) in
        try child.visit(&decoder, isValue: isValue, &found)
      }
      if !isVacant { try decoder.skip() }
    }
    decoder.close()
    if isValue { visitAbsent(others, except: keys, &found) }
  }

  /// Read the item that is next, and visit the scopes of this path, whose patch it is or whose value,
  /// and those below.
  private func visit(
    _ decoder: inout CBORDecoder, isValue: Bool, _ found: inout ChangedScopes
  ) throws(CBORError) {
    let start = decoder.offset
    if !isValue, decoder.undefinedIfNext() { return visitAbsent(&found) }
    try visitChildren(&decoder, isValue: isValue, &found)
    let range = start..<decoder.offset
    found.add(scopes, isValue ? .value(range) : .patch(range))
  }

  /// Visit the scopes of this path and below, which have no value any more.
  private func visitAbsent(_ found: inout ChangedScopes) {
    if present == 0 { return }
    found.add(scopes, .absent)
    visitAbsent(presentBelow, except: [], &found)
  }

  /// Visit the scopes below the keys that a value does not have, of which so many were present.
  private func visitAbsent(
    _ present: Int32, except keys: Set<EncodedKey>, _ found: inout ChangedScopes
  ) {
    if present == 0 { return }
    // As many as there may be: the order in which they are looked at differs between processes.
    found.looked += children.count
    var left = present
    children.forEach(while: { left > 0 }) { key, child in
      if keys.contains(key) { return }
      left -= child.present
      child.visitAbsent(&found)
    }
  }
}

/// The scopes that a patch changes, and how; and how many scopes and keys of paths were looked at to find
/// them.
struct ChangedScopes: Sendable {
  fileprivate(set) var changes: [(scope: UInt64, projection: Projection)] = []
  fileprivate(set) var looked = 0

  @inline(__always)
  fileprivate mutating func add(_ scopes: [UInt64], _ projection: Projection) {
    looked += scopes.count
    for scope in scopes { changes.append((scope, projection)) }
  }

  /// Empty it, and keep the memory of a few.
  mutating func removeAll() {
    if changes.count > 256 { changes = [] } else { changes.clear() }
    looked = 0
  }
}

/// The children of a node by their keys. Once they are many they are in buckets: a change behind a copy of
/// the tree, as is made to foresee an action, copies one of these, and not a hundred thousand children.
private struct ScopeTreeChildren: Sendable {
  /// None, one, or `manyBuckets`.
  private var buckets: [[EncodedKey: ScopeTree]] = []
  private(set) var count = 0

  /// With more children than this, one bucket is split.
  private static let most = 1024
  private static let manyBuckets = 256

  var isEmpty: Bool { count == 0 }

  private func bucket(of key: EncodedKey) -> Int {
    buckets.count == 1 ? 0 : key.hashValue & (Self.manyBuckets - 1)
  }

  /// Call `body` with the child of a key, where it is. Returns false if there is none.
  func visit(
    _ key: EncodedKey, _ body: (borrowing ScopeTree) throws(CBORError) -> Void
  ) throws(CBORError) -> Bool {
    if count == 0 { return false }
    let bucket = bucket(of: key)
    guard let index = buckets[bucket].index(forKey: key) else { return false }
    try body(buckets[bucket].values[index])
    return true
  }

  enum Change {
    /// There is no such child.
    case absent
    case stayed
    /// The child is not here any more.
    case left(ScopeTree)
  }

  /// Change the child of a key, if there is one, and remove it if it does not belong here any more.
  mutating func change(
    _ key: EncodedKey, _ body: (inout ScopeTree) -> Void, staysIf: (borrowing ScopeTree) -> Bool
  ) -> Change {
    if count == 0 { return .absent }
    let bucket = bucket(of: key)
    guard let index = buckets[bucket].index(forKey: key) else { return .absent }
    body(&buckets[bucket].values[index])
    if staysIf(buckets[bucket].values[index]) { return .stayed }
    count -= 1
    return .left(buckets[bucket].remove(at: index).value)
  }

  /// Remove the child of a key, if there is one.
  mutating func remove(_ key: EncodedKey) -> ScopeTree? {
    let change = change(key, { _ in }, staysIf: { _ in false })
    return if case .left(let child) = change { child } else { nil }
  }

  /// Change the child of a key; if there is none, an empty one is added first.
  mutating func insert(_ key: EncodedKey, _ body: (inout ScopeTree) -> Void) {
    if buckets.isEmpty { buckets = [[:]] }
    let bucket = bucket(of: key)
    let former = buckets[bucket].count
    body(&buckets[bucket][key, default: ScopeTree()])
    if buckets[bucket].count == former { return }
    count += 1
    if buckets.count == 1, count > Self.most { split() }
  }

  private mutating func split() {
    let children = buckets[0]
    buckets = Array(repeating: [:], count: Self.manyBuckets)
    for (key, child) in children { buckets[bucket(of: key)][key] = child }
  }

  func forEach(while goesOn: () -> Bool, _ body: (EncodedKey, ScopeTree) -> Void) {
    for bucket in buckets {
      for (key, child) in bucket {
        guard goesOn() else { return }
        body(key, child)
      }
    }
  }
}

/// A key as it stands in a patch. A short one is two words, and is compared and hashed as these: there may be
/// a hundred thousand. Of a longer one the dictionary's own has its bytes, and one that is looked up refers to
/// the patch's.
private struct EncodedKey: Hashable, Sendable {
  private enum Bytes: @unchecked Sendable {
    /// The bytes, zeros, and the number of bytes.
    case short(UInt64, UInt64)
    case own([UInt8])
    /// Only of a key that is looked up while its patch is read, and never in a tree: so it is seen by one
    /// thread, while the bytes are there.
    case borrowed(UnsafeRawBufferPointer)

    /// The bytes of a short key; nil if it has too many.
    static func short(_ bytes: UnsafeRawBufferPointer) -> Bytes? {
      guard bytes.count < 16 else { return nil }
      var words: (UInt64, UInt64) = (0, 0)
      withUnsafeMutableBytes(of: &words) {
        $0.copyMemory(from: bytes)
        $0[15] = UInt8(bytes.count)
      }
      return .short(words.0, words.1)
    }
  }

  private let bytes: Bytes

  init(_ key: PathKey) {
    // In memory that is reserved once.
    let count = if case .text(let text) = key { text.utf8.count } else { 0 }
    var encoder = CBOREncoder(reservingCapacity: 9 + count)
    key.encode(into: &encoder)
    bytes = encoder.bytes.withUnsafeBytes { Bytes.short($0) } ?? .own(encoder.bytes)
  }

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = Bytes.short(bytes) ?? .borrowed(bytes) }

  /// Call `body` with the bytes of a key that is not short.
  private func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    switch bytes {
    case .short: body(UnsafeRawBufferPointer(start: nil, count: 0))
    case .own(let bytes): bytes.withUnsafeBytes(body)
    case .borrowed(let bytes): body(bytes)
    }
  }

  static func == (first: EncodedKey, second: EncodedKey) -> Bool {
    switch (first.bytes, second.bytes) {
    case (.short(let low, let high), .short(let otherLow, let otherHigh)):
      low == otherLow && high == otherHigh
    default: first.withBytes { first in second.withBytes { isSame(first, $0) } }
    }
  }

  /// Compares eight bytes at a time.
  private static func isSame(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer
  ) -> Bool {
    guard first.count == second.count else { return false }
    var index = 0
    while index &+ 8 <= first.count {
      let word = first.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      guard word == second.loadUnaligned(fromByteOffset: index, as: UInt64.self) else {
        return false
      }
      index &+= 8
    }
    while index < first.count {
      guard first[index] == second[index] else { return false }
      index &+= 1
    }
    return true
  }

  func hash(into hasher: inout Hasher) {
    if case .short(let low, let high) = bytes {
      hasher.combine(low)
      // Of up to eight bytes, the first says how many there are.
      if high << 8 != 0 { hasher.combine(high) }
    } else {
      withBytes { hasher.combine(bytes: $0) }
    }
  }
}
