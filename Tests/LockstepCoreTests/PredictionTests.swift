import CBOR
import Lockstep
import Testing
import Values

/// Counts in a map, and rejects odd numbers after it has changed something.
private struct Tally: Reducer {
  typealias State = SyncMap<Int, Int>

  func reduce(into state: inout State, action: Count) throws(Rejection) -> Effect<Count> {
    state[action.number, default: 0] += 1
    if action.number % 2 == 1 { throw Rejection(.refused, "odd") }
    return .send(Count(number: action.number + 2))
  }
}

/// Notes what it draws, and whose action it reduces.
private struct Dice: Reducer {
  @Dependency(\.random) private var random
  @Dependency(\.origin) private var origin

  func reduce(into state: inout SyncMap<Int, Int>, action: Count) -> Effect<Count> {
    state[action.number] = random { Int.random(in: 0..<Int.max, using: &$0) }
    if case .client(let client) = origin { state[-1] = Int(clamping: client.uid) }
    return .none
  }
}

private struct Count: DescribedAction {
  var number: Int
  var name: String { "count" }
}

@Suite struct PredictionTests {
  private let seed = HashSeed(7)
  private let prediction = Prediction(of: Tally(), dependencies: DependencyValues())

  private func reduce(_ number: Int, into state: inout SyncMap<Int, Int>) -> Bool {
    prediction.reduce(Count(number: number), into: &state, from: .owner, number: 1, seed: seed)
  }

  @Test func `a prediction reduces, and starts no effect`() {
    var state = SyncMap<Int, Int>(seed: seed)
    #expect(reduce(2, into: &state) && reduce(2, into: &state))
    #expect(state == [2: 2])
  }

  @Test func `what a reducer rejects changes nothing`() {
    var state = SyncMap<Int, Int>(seed: seed)
    #expect(reduce(2, into: &state))
    #expect(!reduce(3, into: &state) && !reduce(3, into: &state))
    #expect(state == [2: 1])
  }

  @Test func `a prediction leaves the state that it began with, and no notes`() {
    var state = SyncMap<Int, Int>(seed: seed)
    #expect(reduce(4, into: &state))
    let before = state
    for _ in 0..<100 { _ = reduce(4, into: &state) }
    #expect(before == [4: 1] && state == [4: 101])
    var encoder = CBOREncoder()
    let isNoted = state.settle(into: &encoder)
    #expect(!isNoted && encoder.bytes.isEmpty)
  }

  @Test func `each action draws numbers of its own, and the same when it is reduced again`() {
    let prediction = Prediction(of: Dice(), dependencies: DependencyValues())
    func draw(_ number: UInt64) -> Int? {
      var state = SyncMap<Int, Int>(seed: seed)
      prediction.reduce(Count(number: 0), into: &state, from: .owner, number: number, seed: seed)
      return state[0]
    }
    let drawn = (1...100).map { draw($0) }
    #expect(drawn == (1...100).map { draw($0) } && Set(drawn).count == 100)
    #expect(!drawn.contains(nil))
  }

  @Test func `a reducer knows whose action it predicts`() {
    let prediction = Prediction(of: Dice(), dependencies: DependencyValues())
    var state = SyncMap<Int, Int>(seed: seed)
    let client = ClientOrigin(connection: 0, pid: 1, uid: 1001, gid: 2, label: "", session: 3)
    prediction.reduce(
      Count(number: 0), into: &state, from: Cause(.client(client)), number: 1, seed: seed)
    #expect(state[-1] == 1001)
  }
}
