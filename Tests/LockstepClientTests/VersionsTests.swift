import CBOR
import DaemonCore
import EventLoop
import Foundation
import Journal
import Lockstep
import LockstepClient
import LockstepServer
import Logging
import Schemas
import Synchronization
import Testing
import Values
import Wire

// Two versions of a feature. The newer one has a screen and a note that the older one lacks.

/// An enumeration without associated values.
private protocol NumberedCase: SynchronizableScalar, CaseIterable, Equatable {}

extension NumberedCase {
  func encode(into encoder: inout CBOREncoder) {
    encoder.encode(Array(Self.allCases).firstIndex(of: self) ?? 0)
  }

  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    var item = try CaseDecoder(&decoder)
    let cases = Array(Self.allCases)
    guard let number = Int(exactly: item.number), cases.indices.contains(number) else {
      throw item.unknown
    }
    self = cases[number]
    try item.finish(&decoder)
  }

  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    schema.kind(of: Self.self, named: "Screen") { _ in
      .enumeration(allCases.enumerated().map { Schema.Case($0.offset, "\($0.element)") })
    }
  }
}

private enum OldScreen: NumberedCase { case list, chart }
private enum NewScreen: NumberedCase { case list, chart, editor }

private struct Climate: HandWritten, Equatable {
  var fan = 0

  static var parts: [any FieldCoding<Climate>] { [Coded(0, "fan", \Climate.fan)] }
}

private struct OldRemark: HandWritten, Equatable {
  var text = ""

  static var parts: [any FieldCoding<OldRemark>] { [Coded(0, "text", \OldRemark.text)] }
}

private struct NewRemark: HandWritten, Equatable {
  var text = ""
  var author: String?

  static var parts: [any FieldCoding<NewRemark>] {
    [Coded(0, "text", \NewRemark.text), Coded(1, "author", \NewRemark.author)]
  }
}

private struct OldState: HandWritten, Equatable {
  var climate = Climate()
  var screen = OldScreen.list
  var visited: [OldScreen] = []
  var rooms: SyncMap<Int, OldScreen> = [:]
  var remarks: SyncArray<OldRemark> = []

  static var parts: [any FieldCoding<OldState>] {
    [
      Coded(0, "climate", \OldState.climate), Coded(1, "screen", \OldState.screen),
      Coded(2, "visited", \OldState.visited), Coded(3, "rooms", \OldState.rooms),
      Coded(4, "remarks", \OldState.remarks),
    ]
  }
}

private struct NewState: HandWritten, Equatable {
  var climate = Climate()
  var screen = NewScreen.list
  var visited: [NewScreen] = []
  var rooms: SyncMap<Int, NewScreen> = [:]
  var remarks: SyncArray<OldRemark> = []
  var note: String?

  static var parts: [any FieldCoding<NewState>] {
    [
      Coded(0, "climate", \NewState.climate), Coded(1, "screen", \NewState.screen),
      Coded(2, "visited", \NewState.visited), Coded(3, "rooms", \NewState.rooms),
      Coded(4, "remarks", \NewState.remarks), Coded(5, "note", \NewState.note),
    ]
  }
}

/// The state of a version whose remarks have authors.
private struct SignedState: HandWritten, Equatable {
  var climate = Climate()
  var screen = OldScreen.list
  var visited: [OldScreen] = []
  var rooms: SyncMap<Int, OldScreen> = [:]
  var remarks: SyncArray<NewRemark> = []

  static var parts: [any FieldCoding<SignedState>] {
    [
      Coded(0, "climate", \SignedState.climate), Coded(1, "screen", \SignedState.screen),
      Coded(2, "visited", \SignedState.visited), Coded(3, "rooms", \SignedState.rooms),
      Coded(4, "remarks", \SignedState.remarks),
    ]
  }
}

private enum ClimateAction: WrittenAction {
  case fan(Int)

  var name: String { "fan" }
  var words: [String] { if case .fan(let speed) = self { ["fan", "\(speed)"] } else { [] } }

  init?(words: ArraySlice<Substring>) {
    guard words.first == "fan" else { return nil }
    self = .fan(words.last.flatMap { Int($0) } ?? 0)
  }

  struct AllCasePaths: Sendable {}
  static var allCasePaths: AllCasePaths { AllCasePaths() }
}

private enum PlantAction: WrittenAction {
  case climate(ClimateAction)
  /// Shows a screen, in a room too, and records the visit.
  case show(Int)
  /// Removes all rooms and visits.
  case forget
  case note(String)
  /// Adds a remark, with an author where remarks have authors.
  case remark(String)

  var name: String { words[0] }

  var words: [String] {
    switch self {
    case .climate(let action): ["climate"] + action.words
    case .show(let number): ["show", "\(number)"]
    case .forget: ["forget"]
    case .note(let text): ["note", text]
    case .remark(let text): ["remark", text]
    }
  }

  init?(words: ArraySlice<Substring>) {
    let rest = words.dropFirst()
    switch words.first {
    case "climate":
      guard let action = ClimateAction(words: rest) else { return nil }
      self = .climate(action)
    case "show": self = .show(rest.first.flatMap { Int($0) } ?? 0)
    case "forget": self = .forget
    case "note": self = .note(rest.first.map(String.init) ?? "")
    case "remark": self = .remark(rest.first.map(String.init) ?? "")
    default: return nil
    }
  }

  struct AllCasePaths: Sendable {
    var climate: CasePath<PlantAction, ClimateAction> {
      CasePath(
        embed: { .climate($0) }, extract: { if case .climate(let a) = $0 { a } else { nil } })
    }
  }
  static var allCasePaths: AllCasePaths { AllCasePaths() }
}

private struct OldPlant: Reducer {
  func reduce(into state: inout OldState, action: PlantAction) -> Effect<PlantAction> {
    switch action {
    case .climate(.fan(let speed)): state.climate.fan = speed
    case .show(let number): state.screen = OldScreen.allCases[number]
    case .forget: (state.visited, state.rooms) = ([], [:])
    case .note: break
    case .remark(let text): state.remarks.append(OldRemark(text: text))
    }
    return .none
  }
}

private struct NewPlant: Reducer {
  func reduce(into state: inout NewState, action: PlantAction) -> Effect<PlantAction> {
    switch action {
    case .climate(.fan(let speed)): state.climate.fan = speed
    case .show(let number):
      state.screen = NewScreen.allCases[number]
      state.visited.append(state.screen)
      state.rooms[number] = state.screen
    case .forget: (state.visited, state.rooms) = ([], [:])
    case .note(let text): state.note = text
    case .remark(let text): state.remarks.append(OldRemark(text: text))
    }
    return .none
  }
}

private struct SignedPlant: Reducer {
  func reduce(into state: inout SignedState, action: PlantAction) -> Effect<PlantAction> {
    switch action {
    case .climate(.fan(let speed)): state.climate.fan = speed
    case .remark(let text): state.remarks.append(NewRemark(text: text, author: "me"))
    case .show, .forget, .note: break
    }
    return .none
  }
}

// MARK: Clients

@Suite struct OldClientTests {
  private typealias OldMirror = MirrorStore<OldPlant>

  private func options(_ socket: String) -> Connection.Options {
    Connection.Options(socket: socket, label: "old")
  }

  @Test func `a mirror of a part stays live when the state elsewhere has an unknown case`()
    async throws
  {
    try await withDaemon(of: NewPlant(), state: NewState()) { socket, daemon in
      let whole = try await OldMirror.connect(options(socket))
      let climate = try await whole.scope(state: \.climate, action: \.climate)
      let new = try await MirrorStore<NewPlant>.connect(.init(socket: socket, label: "new"))
      try await new.send(.show(2))
      await eventually { whole.subscription.status != .live }
      guard case .stale(_, let goodbye?) = whole.subscription.status else {
        Issue.record("\(whole.subscription.status)")
        return
      }
      #expect(goodbye.code == .schema && goodbye.message.contains("state.screen.editor"))
      // It shows the last state it could read; the part stays live, and its actions succeed.
      #expect(whole.screen == .list && climate.subscription.status == .live)
      try await new.send(.climate(.fan(3)))
      await eventually { climate.fan == 3 }
      try await climate.send(.fan(4))
      #expect(climate.fan == 4 && whole.state.climate.fan == 0)
      try await whole.send(.climate(.fan(5)))
      await eventually { climate.fan == 5 }

      // A new connection retries.
      try await new.send(.show(0))
      try await new.send(.forget)
      let state = new.state
      await new.connection.finish()
      await daemon.stop()
      let next = try await HostedDaemon(socket, reducer: NewPlant(), state: state)
      await eventually { whole.subscription.status == .live && whole.state.climate.fan == 5 }
      try await whole.send(.climate(.fan(6)))
      #expect(whole.state.climate.fan == 6)
      await eventually { climate.fan == 6 }
      await whole.connection.finish()
      await next.stop()
    }
  }

  @Test
  func `waiting for a part with an unknown case fails with the reason, other parts stay live`()
    async throws
  {
    try await withDaemon(of: NewPlant(), state: NewState()) { socket, _ in
      let replica = try await Subscription<Climate>.connect(
        to: [0], Self.expecting(socket))
      let new = try await MirrorStore<NewPlant>.connect(.init(socket: socket, label: "new"))
      try await new.send(.show(2))
      let whole = replica.connection.subscribe(to: [1], as: Climate.self)
      await #expect { try await whole.reached(revision: 0) } throws: { error in
        guard case ClientError.closed(let goodbye) = error else { return false }
        return goodbye.code == .schema && goodbye.message.contains("state.screen.editor")
      }
      await #expect(throws: ClientError.self) { try await whole.reached(revision: 0) }
      try await new.send(.climate(.fan(9)))
      await eventually { replica.state?.fan == 9 }
      await replica.connection.finish()
      await new.connection.finish()
    }
  }

  @Test func `a client connects to a part while the state elsewhere has an unknown case`()
    async throws
  {
    try await withDaemon(of: NewPlant(), state: NewState()) { socket, _ in
      let new = try await MirrorStore<NewPlant>.connect(.init(socket: socket, label: "new"))
      try await new.send(.show(2))
      let climate = try await OldMirror.connect(
        to: \.climate, action: \.climate, options(socket))
      try await climate.send(.fan(4))
      #expect(climate.fan == 4 && climate.subscription.status == .live)
      // A key path through two structs; its actions are those of the part around it.
      let fan = try await OldMirror.connect(
        to: \.climate.fan, action: \.climate, options(socket))
      #expect(fan.state == 4 && fan.subscription.path == [0, 0])
      try await fan.send(.fan(5))
      #expect(fan.state == 5)
      await new.connection.finish()
    }
  }

  private static func expecting(_ socket: String) -> Connection.Options {
    var options = Connection.Options(socket: socket, label: "old")
    options.schemaUse = .expected(OldPlant.schema)
    return options
  }

  @Test func `a client that can read none of its mirrors closes, with the reason`() async throws {
    try await withDaemon(of: NewPlant(), state: NewState()) { socket, _ in
      let whole = try await OldMirror.connect(options(socket))
      let new = try await MirrorStore<NewPlant>.connect(.init(socket: socket, label: "new"))
      try await new.send(.show(2))
      await eventually { if case .closed = whole.subscription.status { true } else { false } }
      await #expect(throws: ClientError.self) { try await whole.send(.climate(.fan(1))) }
      let error = await #expect(throws: ClientError.self) {
        _ = try await OldMirror.connect(options(socket))
      }
      #expect("\(error as Any)".contains("state.screen.editor"))
      await new.connection.finish()
    }
  }
}

// MARK: Daemons

/// Records log lines.
private struct KeepingHandler: LogHandler {
  let lines: Recorder<String>
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.notice

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    lines.append("\(event.level): \(event.message) \(event.metadata ?? [:])")
  }
}

/// Daemons of both versions, one after the other, on one state directory.
@Suite struct OldDaemonTests {
  private let folder: String
  private let lines = Recorder<String>()

  init() throws {
    var template = Array("/tmp/lockstep-versions-XXXXXX".utf8CString)
    folder = try #require(mkdtemp(&template).map { String(cString: $0) })
  }

  /// Runs a daemon that performs these actions and stops. Returns the states at its start and its
  /// end, and the last revision.
  @discardableResult
  private func live<R: Reducer>(
    _ reducer: R, _ state: R.State, recoverTo: UInt64? = nil, in folder: String? = nil,
    _ actions: [R.Action] = []
  ) async throws -> (began: R.State, ended: R.State, revision: UInt64) {
    let loop = try Loop.startThread(name: "test-daemon")
    defer { loop.stop() }
    let socket = self.folder + "/socket"
    let persistence = PersistenceOptions(
      directory: folder ?? self.folder + "/state", durability: .sync, recoverTo: recoverTo)
    let logger = Logger(label: "test") { [lines] _ in KeepingHandler(lines: lines) }
    let box = Guarded<Unchecked<Daemon<R>>?>(nil)
    try await withCheckedThrowingContinuation { (done: CheckedContinuation<Void, any Error>) in
      loop.execute {
        done.resume(
          with: Result {
            let daemon = try Daemon(
              initialState: state, persistence: persistence, logger: logger, on: loop
            ) { reducer }
            try daemon.serve(at: socket, mode: 0o600)
            box.value = Unchecked(daemon)
          })
      }
    }
    let mirror = try await MirrorStore<R>.connect(.init(socket: socket, label: "test"))
    let began = mirror.state
    for action in actions { try await mirror.send(action) }
    let (ended, revision) = (mirror.state, mirror.subscription.position?.revision ?? 0)
    await mirror.connection.finish()
    loop.execute { box.value?.value.stop(retryAfter: nil) }
    await onThread { loop.waitUntilEnded() }
    box.value = nil
    return (began, ended, revision)
  }

  /// Carries a daemon that is used only on its loop.
  private final class Unchecked<T>: @unchecked Sendable {
    let value: T
    init(_ value: T) { self.value = value }
  }

  private func clean() { try? FileManager.default.removeItem(atPath: folder) }

  private func files() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder + "/state").sorted()
  }

  @Test func `an older daemon starts when an unknown case is no longer in the state`() async throws
  {
    defer { clean() }
    let new = try await live(
      NewPlant(), NewState(), [.climate(.fan(3)), .show(2), .show(1), .forget, .climate(.fan(4))])
    let old = try await live(OldPlant(), OldState(), [.climate(.fan(5))])
    #expect(old.began == OldState(climate: Climate(fan: 4), screen: .chart))
    #expect(old.revision == new.revision + 1)
    let log = lines.all.joined(separator: "\n")
    #expect(log.contains("is gone by the end") && log.contains("state.screen.editor"))
    // It continues with its own schema.
    let again = try await live(OldPlant(), OldState())
    #expect(again.began == old.ended && again.revision == old.revision)
  }

  @Test func `an older daemon starts when only the snapshot has the unknown case`() async throws {
    defer { clean() }
    var state = NewState()
    (state.screen, state.visited, state.rooms) = (.editor, [.editor, .list], [7: .editor])
    try await live(NewPlant(), state, [.show(0), .forget])
    let old = try await live(OldPlant(), OldState())
    #expect(old.began == OldState())
  }

  @Test
  func `an older daemon refuses a state with an unknown case, and names the case and the remedies`()
    async throws
  {
    defer { clean() }
    let new = try await live(
      NewPlant(), NewState(), [.climate(.fan(3)), .note("a"), .show(2), .climate(.fan(4))])
    let error = await #expect(throws: DaemonError.self) { try await live(OldPlant(), OldState()) }
    #expect(error?.status == DaemonError.otherVersion)
    let said = error?.description ?? ""
    #expect(said.contains("the case state.screen.editor") && said.contains("revision 4"), "\(said)")
    #expect(said.contains("--recover-to 2"), "\(said)")
    // Nothing has changed on disk, and both remedies work.
    let back = try await live(NewPlant(), NewState())
    #expect(back.began == new.ended && back.revision == new.revision)
    let old = try await live(OldPlant(), OldState(), recoverTo: 2)
    #expect(old.began == OldState(climate: Climate(fan: 3)) && old.revision == 2)
    #expect(try files().contains { $0.contains("before-recovery-to-2") })
  }

  @Test func `no revision is offered for recovery when the snapshot already has the unknown case`()
    async throws
  {
    defer { clean() }
    var state = NewState()
    state.screen = .editor
    try await live(NewPlant(), state, [.climate(.fan(3))])
    let error = await #expect(throws: DaemonError.self) { try await live(OldPlant(), OldState()) }
    #expect(error?.status == DaemonError.otherVersion)
    #expect(error?.description.contains("--recover-to") == false)
    #expect(error?.description.contains("Start that version again") == true)
  }

  @Test func `fields that an older daemon does not know wait in its journal for a newer one`()
    async throws
  {
    defer { clean() }
    let new = try await live(NewPlant(), NewState(), [.note("hello"), .climate(.fan(3))])
    let old = try await live(OldPlant(), OldState(), [.climate(.fan(4))])
    #expect(old.began == OldState(climate: Climate(fan: 3)))
    // Another process of the older version goes on.
    let last = try await live(OldPlant(), OldState(), [.climate(.fan(5))])
    let back = try await live(NewPlant(), NewState())
    var expected = new.ended
    expected.climate.fan = 5
    #expect(back.began == expected && back.revision == last.revision)
    let told = lines.all.filter { $0.contains("wait") }
    #expect(told.count == 2 && told[0].contains("state.note") && told[1].contains("are back"))
    // Nothing was lost, so there is no copy.
    #expect(try files().allSatisfy { !$0.contains("before-dropping-fields") })
    // What the newer one has changed since is not undone by what has waited.
    try await live(NewPlant(), NewState(), [.note("goodbye")])
    #expect(try await live(NewPlant(), NewState()).began.note == "goodbye")
  }

  @Test func `dropped parts of elements are logged once, and kept in a copy`() async throws {
    defer { clean() }
    let new = try await live(
      SignedPlant(), SignedState(), [.remark("hello"), .climate(.fan(3))])
    let old = try await live(OldPlant(), OldState(), [.climate(.fan(4))])
    #expect(
      old.began == OldState(climate: Climate(fan: 3), remarks: [OldRemark(text: "hello")]))
    let warnings = lines.all.filter {
      $0.hasPrefix("warning") && $0.contains("state.remarks[].author")
    }
    let copies = try files().filter { $0.contains("before-dropping-fields") }
    #expect(warnings.count == 1 && copies == ["journal.sqlite.before-dropping-fields"])
    let path = folder + "/state/" + (try #require(copies.first))
    #expect(warnings.allSatisfy { $0.contains(path) })
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(mode == 0o600)

    // The newer version, started on this journal, lacks the author; on the copy, it has everything.
    let back = try await live(SignedPlant(), SignedState()).began
    #expect(back == SignedState(climate: Climate(fan: 4), remarks: [NewRemark(text: "hello")]))
    let other = folder + "/other"
    try FileManager.default.createDirectory(
      atPath: other, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    try FileManager.default.copyItem(atPath: path, toPath: other + "/journal.sqlite")
    let restored = try await live(SignedPlant(), SignedState(), in: other)
    #expect(restored.began == new.ended && restored.revision == new.revision)
    // A version that drops nothing makes no copy.
    #expect(try files().filter { $0.contains("before-dropping-fields") } == copies)
  }
}
