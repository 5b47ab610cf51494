import CBOR
import ClientCore
import Lockstep
import LockstepClient
import LockstepStore
import Schemas
import Testing
import Values
import Wire

/// This file imports every module of the client's product.
@Suite struct NamesTests {
  @Test func `no type of ours shadows one of the standard library`() {
    #expect(Mirror(reflecting: (first: 1, second: 2)).children.count == 2)
    let strings: [String] = Array(Set(["a"])) + Dictionary(uniqueKeysWithValues: [("b", 1)]).keys
    #expect(strings == ["a", "b"])
    #expect(Result<Int, Never>.success(1) == .success(1))
    let range: Range<Int> = 0..<2
    #expect(range.contains(Slice(base: [0, 1], bounds: 1..<2).first ?? 2))
  }

  /// Has a field for each member of a mirror and of its connection, except the members that
  /// `MirrorStore` documents.
  @Test func `a state's own fields win over the members of its mirror`() async throws {
    try await withDaemon(of: Robot(), state: RobotState()) { socket, _ in
      let mirror = try await MirrorStore<Robot>.connect(.init(socket: socket, label: "test"))
      #expect(mirror.position == 1 && mirror.counters == 2 && mirror.digest == 3)
      #expect(mirror.path == "4" && mirror.status == "5" && mirror.welcome && mirror.schema == 7)
      #expect(mirror.observers == 8 && mirror.connections == 9 && mirror.report == 10)
      #expect(mirror.close == 11 && mirror.finish == 12 && mirror.snapshot == 13)
      let positions = Recorder<Int>()
      record(positions) { [weak mirror] in mirror?.position }
      try await mirror.send(.move)
      await eventually { positions.all == [1, 2] }
      #expect(mirror.subscription.position?.revision == 1)
      // `subscription` is a documented member: a field of that name is read by its key path.
      let names = Recorder<String>()
      record(names) { [weak mirror] in mirror?[dynamicMember: \.subscription] }
      #expect(names.all == ["mine"] && mirror.state.subscription == "mine")
      await mirror.connection.finish()
    }
  }

  @Test func `a state's own fields win over the members of its store`() {
    let store = LockstepStore.Store.unchecked(initialState: RobotState()) { Robot() }
    #expect(store.position == 1 && store.observers == 8 && store.subscription == "mine")
  }
}

private struct RobotState: HandWritten {
  var position = 1
  var counters = 2
  var digest = 3
  var path = "4"
  var status = "5"
  var welcome = true
  var schema = 7
  var observers = 8
  var connections = 9
  var report = 10
  var close = 11
  var finish = 12
  var snapshot = 13
  var subscription = "mine"

  static var parts: [any FieldCoding<RobotState>] {
    [
      Coded(0, "position", \RobotState.position), Coded(1, "counters", \RobotState.counters),
      Coded(2, "digest", \RobotState.digest), Coded(3, "path", \RobotState.path),
      Coded(4, "status", \RobotState.status), Coded(5, "welcome", \RobotState.welcome),
      Coded(6, "schema", \RobotState.schema), Coded(7, "observers", \RobotState.observers),
      Coded(8, "connections", \RobotState.connections), Coded(9, "report", \RobotState.report),
      Coded(10, "close", \RobotState.close), Coded(11, "finish", \RobotState.finish),
      Coded(12, "snapshot", \RobotState.snapshot),
      Coded(13, "subscription", \RobotState.subscription),
    ]
  }
}

private struct Robot: Reducer {
  enum Action: WrittenAction {
    case move

    var name: String { "move" }
    var words: [String] { ["move"] }
    init?(words: ArraySlice<Substring>) { self = .move }
    struct AllCasePaths: Sendable {}
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  func reduce(
    into state: inout RobotState, action: Action
  ) throws(Rejection) -> Effect<Action> {
    state.position += 1
    return .none
  }
}
