import CBOR
import ClientCore
import DaemonCore
import Lockstep
import Values
import Wire

/// A peer that breaks the protocol or the rules.
struct Stranger: Sendable {
  let link: ConnectionID
  let leavesAt: Instant
  let reads: Bool
}

extension Simulation {
  mutating func addStranger() throws(SimulationFailure) {
    guard daemon != nil else { return }
    count("strangers")
    // Another user, that may know a token.
    let id = try open(uid: 2000)
    guard let place = place(of: id) else { return }
    links[place].toDaemon = nonsense()
    strangers.append(
      Stranger(
        link: id, leavesAt: now + .milliseconds(Int64(below(20_000))), reads: chance(700)))
  }

  /// Strangers read what they receive, or do not, and disconnect at some time.
  mutating func strangersRead() {
    for stranger in strangers {
      guard let place = place(of: stranger.link) else { continue }
      if stranger.reads {
        links[place].toClient = []
        links[place].pump()
      }
      if isKind || !links[place].daemonIsOpen || stranger.leavesAt < now { links[place].leave() }
    }
    strangers = strangers.filter { stranger in
      place(of: stranger.link).map { links[$0].clientIsOpen } ?? false
    }
  }

  private mutating func nonsense() -> [UInt8] {
    func frame(_ message: ClientMessage) -> [UInt8] {
      Frame.encode { message.encode(into: &$0) }
    }
    let hello = frame(.hello(.init(versions: 1...1, label: "stranger\n")))
    let subscribe = frame(.subscribe(subscription: 1, .root, nil))
    switch below(14) {
    case 0: return (0..<below(60)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    case 1: return [255, 255, 255, 127, 0, 0]
    case 2: return frame(.hello(.init(versions: 7...9, label: "")))
    case 3: return Frame.encode { ServerMessage.pong(1, revision: 1).encode(into: &$0) }
    case 4: return hello + frame(.action(number: UInt64(below(2) * 7), .applied, payload: [0]))
    case 5: return hello + subscribe.dropLast(1 + below(4))
    case 6: return hello + [3, 0, 0, 0, 0x82, 0x18, 99]
    case 7:
      let token = clients.compactMap { $0.session.welcome?.token }.first
      return frame(.hello(.init(versions: 1...1, label: "thief", token: token)))
    case 8: return []
    case 9:
      let keys = [PathKey](repeating: .text("a"), count: 50)
      return hello + frame(.subscribe(subscription: 1, Path(keys), nil))
    case 10: return hello + hello
    case 11:
      return hello + Frame.encode { ServerMessage.pong(1, revision: 1).encode(into: &$0) }
    case 12: return hello + subscribe
    default:
      var bytes = hello + subscribe + frame(.ping(3)) + frame(.query(number: 1, "status"))
      bytes[below(bytes.count)] = UInt8(truncatingIfNeeded: random.next())
      return bytes
    }
  }
}
