import Glibc
import Synchronization
import Values

/// What the values that were handed out refer to: valid until they are invalidated together.
///
/// A value handed out is an address inside a mirror. The root of each mirror that was asked for is kept
/// here: a reference, which is given back before the session changes the mirror, so that the mirror
/// changes in place.
final class ValueStore {
  /// The handle that the values name, which has their generation.
  private(set) var handle: UnsafeMutablePointer<Handle>?
  private var roots: [UInt64: UnsafeMutablePointer<Value?>] = [:]
  /// The mirrors whose root is filled in.
  private var filled: Set<UInt64> = []
  private var reports: [UnsafeMutablePointer<Value?>] = []
  private var texts = CTexts()

  /// Generations are never used twice in a process, so that no value is valid by accident.
  private static let lastGeneration = Atomic<UInt64>(0)

  deinit {
    for root in roots.values { Self.release(root) }
    for report in reports { Self.release(report) }
  }

  private static func release(_ root: UnsafeMutablePointer<Value?>) {
    root.deinitialize(count: 1)
    root.deallocate()
  }

  private static func allocate(_ value: Value?) -> UnsafeMutablePointer<Value?> {
    let root = UnsafeMutablePointer<Value?>.allocate(capacity: 1)
    root.initialize(to: value)
    return root
  }

  func begin(_ handle: UnsafeMutablePointer<Handle>) {
    self.handle = handle
    invalidate()
  }

  /// Make every value that was handed out invalid, and give back what it referred to.
  func invalidate() {
    handle?.pointee.generation =
      Self.lastGeneration.wrappingAdd(1, ordering: .relaxed).newValue
    for subscription in filled { roots[subscription]?.pointee = nil }
    filled.removeAll(keepingCapacity: true)
    for report in reports { Self.release(report) }
    reports.removeAll(keepingCapacity: true)
    texts.releaseAll()
  }

  /// The address of the root of a mirror, which `value` gives if it is not known yet; nil if the mirror
  /// is absent.
  func root(
    of subscription: UInt64, _ value: () throws(Failure) -> Value?
  ) throws(Failure) -> UnsafePointer<Value>? {
    if filled.contains(subscription), let root = roots[subscription] { return Self.address(root) }
    let value = try value()
    let root = roots[subscription] ?? Self.allocate(nil)
    root.pointee = value
    roots[subscription] = root
    filled.insert(subscription)
    return Self.address(root)
  }

  /// Forget a mirror.
  func remove(_ subscription: UInt64) {
    filled.remove(subscription)
    if let root = roots.removeValue(forKey: subscription) { Self.release(root) }
  }

  /// Keep a report until the values become invalid.
  func keep(_ report: Value) -> UnsafePointer<Value>? {
    let root = Self.allocate(report)
    reports.append(root)
    return Self.address(root)
  }

  /// An Optional has its payload at its start, so the address of a `.some` is that of its value.
  private static func address(_ root: UnsafeMutablePointer<Value?>) -> UnsafePointer<Value>? {
    root.pointee == nil
      ? nil : UnsafeRawPointer(root).assumingMemoryBound(to: Value.self)
  }

  /// A text of few bytes, copied.
  func copy(_ text: String) -> UnsafePointer<CChar> { texts.copy(text) }
}
