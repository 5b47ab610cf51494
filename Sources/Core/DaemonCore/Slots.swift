/// A dictionary whose values keep one index from insertion to removal. With the index, a value can
/// be reached without hashing, and used in place without a copy.
struct Slots<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private var places: [Key: Int] = [:]
  /// The keys and values by index. A free slot has no key, and `vacant` as its value: an array of
  /// optional values would be read by copying them.
  private var taken: [Key?] = []
  private var slots: [Value] = []
  private var free: [Int] = []
  private let vacant: Value

  init(vacant: Value) { self.vacant = vacant }

  var count: Int { places.count }

  /// In unspecified order.
  var keys: Dictionary<Key, Int>.Keys { places.keys }

  /// The keys with their values, in the order of their indices.
  var pairs: some Sequence<(key: Key, value: Value)> {
    taken.indices.lazy.compactMap { place in taken[place].map { ($0, slots[place]) } }
  }
  var values: some Sequence<Value> { pairs.lazy.map { $0.value } }

  /// Indices are less than this.
  var placeCount: Int { slots.count }

  /// The key whose value is at an index below `placeCount`; nil if there is none.
  func key(at place: Int) -> Key? { taken[place] }

  /// The index of a key's value.
  func place(of key: Key) -> Int? { places[key] }

  /// Whether an index that `place(of:)` returned for a key is still that of this key: a key that has
  /// been removed does not come back. O(1), without hashing.
  @inline(__always)
  func holds(_ key: Key, at place: Int) -> Bool { place < taken.count && taken[place] == key }

  /// The value at an index that `place(of:)` returned; it must not have been removed since.
  subscript(place place: Int) -> Value {
    @inline(__always) unsafeAddress { address(of: place) }
    @inline(__always) unsafeMutableAddress { mutableAddress(of: place) }
  }

  /// The address of that value, for an accessor that gives it out: during its access, this table is
  /// neither changed nor freed.
  @inline(__always)
  func address(of place: Int) -> UnsafePointer<Value> { slots.address(of: place) }

  @inline(__always)
  mutating func mutableAddress(of place: Int) -> UnsafeMutablePointer<Value> {
    slots.mutableAddress(of: place)
  }

  subscript(key: Key) -> Value? {
    get { places[key].map { slots[$0] } }
    set {
      if let newValue {
        put(newValue, key)
      } else {
        _ = removeValue(forKey: key)
      }
    }
  }

  private mutating func put(_ value: Value, _ key: Key) {
    if let place = places[key] {
      slots[place] = value
    } else if let place = free.popLast() {
      places[key] = place
      taken[place] = key
      slots[place] = value
    } else {
      places[key] = slots.count
      taken.append(key)
      slots.append(value)
    }
  }

  mutating func removeValue(forKey key: Key) -> Value? {
    guard let place = places.removeValue(forKey: key) else { return nil }
    var value = vacant
    swap(&value, &slots[place])
    taken[place] = nil
    free.append(place)
    return value
  }
}
