import ClientCore
import Documents
import EventLoop
import LockstepClient
import Synchronization
import Values

extension Value {
  /// A sentence on why this value, which is at `place`, has nothing at `rest`.
  func absence(of rest: Path, at place: Path) -> String {
    var value = self
    var place = place
    for key in rest.keys {
      guard let child = value.child(key) else { return value.lack(of: key, at: place) }
      place.keys.append(key)
      value = child
    }
    return "nothing stands at '\(place.pointer)'."
  }

  private func lack(of key: PathKey, at path: Path) -> String {
    let place = path.keys.isEmpty ? "the document" : "the \(kind) at \(path.pointer)"
    switch self {
    case .array(let elements):
      let count = elements.count == 1 ? "1 element" : "\(elements.count) elements"
      guard key.mayBeIndex else {
        return "\(place) has \(count), and \"\(key.description.shortened)\" is no index of one."
      }
      return "\(place) has \(count); there is no index \(key.description.shortened)."
    case .object(let entries): return "\(place) \(Self.lack(of: key.description, in: entries))"
    case .null, .bool, .integer, .unsigned, .double, .text, .bytes:
      let absent = Path(path.keys + [key]).pointer.shortened
      return "\(place) has no parts, so there is no \(absent)."
    }
  }

  /// A sentence on a member that an object does not have: it names the members that it has, if they
  /// are few, and the one that was probably meant.
  private static func lack(of name: String, in entries: TrieMap<String, Value>) -> String {
    if entries.isEmpty { return "is an empty object: it has no member \"\(name.shortened)\"." }
    let absence = "has no member \"\(name.shortened)\""
    // Comparing long texts takes long.
    let names = name.utf8.count > 100 ? [] : entries.map(\.key).filter { $0.utf8.count <= 100 }
    let few = entries.count <= 8 ? names.sorted { String.precedes($0, $1) } : []
    let list = few.map { "\"\($0.shortened)\"" }.joined(separator: ", ")
    return absence + (list.isEmpty ? "." : "; it has \(list).") + hint(for: name, among: names)
  }

  private static func hint(for name: String, among names: [String]) -> String {
    if name.isEmpty { return " '/' is the member whose name is empty; the whole is ''." }
    // Names of one or two letters are all alike.
    return name.count < 3 ? "" : name.hint(among: names)
  }
}

extension Client {
  /// A sentence on why there is nothing at a path: what the nearest value above it has. `state` is
  /// the value at the path's scope.
  ///
  /// It requests the values above the scope, one after the other, and says less if one is large.
  func absence(of path: PathArgument, in state: Value?) async -> String {
    if let state { return state.absence(of: path.rest, at: path.scope) }
    for count in (0..<path.scope.keys.count).reversed() {
      let ancestor = Path(Array(path.path.keys.prefix(count)))
      switch await glance(at: ancestor) {
      case .value(let value):
        return value.absence(of: Path(Array(path.path.keys[count...])), at: ancestor)
      case .nothing: continue
      case .unknown: return "nothing stands at '\(path.path.pointer)'."
      }
    }
    return "nothing stands at '\(path.path.pointer)'."
  }

  enum Glance {
    case value(Value)
    case nothing
    /// The value is too large, or may not be seen.
    case unknown
  }

  /// The value at a path, unless it is large.
  func glance(at path: Path) async -> Glance {
    let mirror = open(path)
    let arrival = Arrival()
    Task.detached {
      do {
        try await mirror.reached(revision: 0)
        arrival.isWhole.withLock { $0 = true }
      } catch {
        arrival.isWhole.withLock { $0 = false }
      }
    }
    while mirror.counters.bytes <= 1 << 20 {
      if let isWhole = arrival.isWhole.withLock({ $0 }) {
        return isWhole ? mirror.state.map { .value($0) } ?? .nothing : .unknown
      }
      try? await LoopClock().sleep(for: .milliseconds(1))
    }
    return .unknown
  }

  /// Whether a value has arrived completely; nil while it still may.
  private final class Arrival: Sendable {
    let isWhole = Mutex<Bool?>(nil)
  }
}
