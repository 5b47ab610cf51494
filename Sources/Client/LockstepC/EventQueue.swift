import ClientCore
import Values
import Wire

/// The events that the caller has not taken yet.
struct EventQueue {
  enum Event {
    case state(ClientSession.ConnectionState)
    case changed(UInt64)
    case outcome(ClosedRange<ActionID>, Acknowledgement)
    case refused(UInt64, code: UInt64, String)
    case report(UInt64, Value)
  }

  private var events: [Event] = []
  private var first = 0
  /// The mirrors that have a `changed` in the queue, and which of their places changed.
  private var changes: [UInt64: ChangedPlaces] = [:]

  var isEmpty: Bool { first == events.count }

  mutating func append(_ event: Event) { events.append(event) }

  /// Note a change of a mirror. Changes share an event until it is taken.
  mutating func appendChange(of subscription: UInt64) {
    if changes[subscription] != nil { return }
    changes[subscription] = ChangedPlaces()
    events.append(.changed(subscription))
  }

  /// Note which places a patch of a mirror changes; one without bytes is a snapshot.
  mutating func appendPatch(_ patch: [UInt8], of subscription: UInt64) {
    appendChange(of: subscription)
    if patch.isEmpty {
      changes[subscription] = .whole
    } else {
      changes[subscription, default: ChangedPlaces()].note(patch)
    }
  }

  /// Forget the changes of a mirror that is gone.
  mutating func removeChanges(of subscription: UInt64) {
    guard changes.removeValue(forKey: subscription) != nil else { return }
    events.removeSubrange(..<first)
    first = 0
    events.removeAll { if case .changed(subscription) = $0 { true } else { false } }
  }

  mutating func removeFirst() -> (Event, ChangedPlaces)? {
    guard !isEmpty else { return nil }
    let event = events[first]
    first += 1
    if isEmpty {
      events.removeAll(keepingCapacity: true)
      first = 0
    }
    guard case .changed(let subscription) = event else { return (event, ChangedPlaces()) }
    return (event, changes.removeValue(forKey: subscription) ?? ChangedPlaces())
  }
}
