import Testing
import Values
import Wire

@testable import DaemonCore

/// The subscribers of a scope, held equal to an array of those that have not left.
@Suite struct SubscribersTests {
  private struct Seated: Equatable {
    let seat: UInt64
    let connection: ConnectionPlace
    var slot: Int
  }

  private func place(_ number: Int) -> ConnectionPlace {
    ConnectionPlace(id: ConnectionID(UInt64(number)), place: number)
  }

  /// What is left if each connection is asked whether it is there.
  private func shown(_ subscribers: Subscribers, of plain: [Seated]) -> [Seated] {
    let connections = Set(plain.map(\.connection))
    return subscribers.all.filter { connections.contains($0.connection) }.map {
      Seated(seat: $0.seat, connection: $0.connection, slot: $0.slot)
    }
  }

  @Test(arguments: 0..<20 as Range<UInt64>)
  func `any of them may leave, and the others keep their order`(seed: UInt64) {
    var random = SplitMix64(seed)
    var (subscribers, plain) = (Subscribers(), [Seated]())
    // Growing, shrinking, and to the last.
    for (steps, isGrowing) in [(300, true), (600, false), (200, true)] {
      for step in 0..<steps {
        if Int.random(in: 0..<3, using: &random) == 0 ? !isGrowing : isGrowing {
          let connection = place(step)
          let seat = subscribers.append(connection, slot: step)
          plain.append(Seated(seat: seat, connection: connection, slot: step))
        } else if let left = plain.indices.randomElement(using: &random) {
          let seat = plain.remove(at: left).seat
          subscribers.remove(seat)
          // The second time it is not there.
          if step % 2 == 0 { subscribers.remove(seat) }
        }
        #expect(shown(subscribers, of: plain) == plain)
        #expect(subscribers.isEmpty == plain.isEmpty)
        #expect(subscribers.all.count <= max(1, 2 * plain.count))
      }
    }
  }

  @Test func `a gap is no connection, and the others keep their places beside it`() {
    var subscribers = Subscribers()
    let seats = (0..<4).map { subscribers.append(place($0), slot: 0) }
    subscribers.remove(seats[1])
    #expect(subscribers.all.map(\.connection.place) == [0, .max, 2, 3])
    subscribers.note(slot: 5, at: 2)
    subscribers.remove(seats[0])
    #expect(subscribers.all.map(\.connection) == [place(2), place(3)])
    #expect(subscribers.all.map(\.slot) == [5, 0])
  }

  @Test func `a number that none has changes nothing`() {
    var subscribers = Subscribers()
    subscribers.remove(0)
    #expect(subscribers.isEmpty)
    let seat = subscribers.append(place(1), slot: 0)
    subscribers.remove(seat + 1)
    #expect(!subscribers.isEmpty)
  }
}
