import Wire

/// How much of the state has changed since its digest was computed, and the connections that wait for it
/// to be.
///
/// Parts of the state keep their digests, so another one takes as long as what has changed: behind a large
/// value most of a second. So it is computed beside the loop, of a copy of the state, and then once more on
/// the loop, where only what has changed meanwhile is looked at.
struct Digests: Sendable {
  /// The number of changed bytes (`Counters.changedBytes`) at the newest state whose digest was computed.
  private var computed = 0
  /// That number at the state whose digest is being computed; nil if none is.
  private var running: Int?
  /// How often it has been computed since the journal had one.
  private(set) var tries = 0
  /// The connections whose next request is for a digest. They may have ended.
  private var waiting: [ConnectionID] = []

  /// How many bytes have changed since a state whose digest was computed.
  @inline(__always)
  func changed(at count: Int) -> Int { count &- computed }

  /// Begin to compute it beside the loop. Returns false if that is being done already.
  mutating func begin(at count: Int) -> Bool {
    if running != nil { return false }
    running = count
    return true
  }

  mutating func wait(_ id: ConnectionID) { waiting.append(id) }

  /// The journal has one.
  mutating func noteKept() { tries = 0 }

  /// It has been computed. Returns the connections that wait for that.
  mutating func end() -> [ConnectionID] {
    guard let running else { return [] }
    computed = running
    tries += 1
    defer { (self.running, waiting) = (nil, []) }
    return waiting
  }
}
