import CBOR
import IssueReporting
import Lockstep
import LockstepTesting
import Synchronization
import Values

/// Records reports, instead of failing the test.
final class Recorder: IssueReporter {
  private let texts = Mutex<(issues: [String], expected: [String])>(([], []))

  /// The reported issues.
  var issues: [String] { texts.withLock { $0.issues } }
  /// The reported expected issues, which do not fail the test.
  var expected: [String] { texts.withLock { $0.expected } }

  func reportIssue(
    _ message: @autoclosure () -> String?, fileID: StaticString, filePath: StaticString,
    line: UInt, column: UInt
  ) {
    let text = message() ?? ""
    texts.withLock { $0.issues.append(text) }
  }

  func reportIssue(
    _ message: @autoclosure () -> String?, severity: IssueSeverity, fileID: StaticString,
    filePath: StaticString, line: UInt, column: UInt
  ) {
    let text = message() ?? ""
    texts.withLock { $0.issues.append(text) }
  }

  func expectIssue(
    _ message: @autoclosure () -> String?, fileID: StaticString, filePath: StaticString,
    line: UInt, column: UInt
  ) {
    let text = message() ?? ""
    texts.withLock { $0.expected.append(text) }
  }
}

/// Runs an operation, and returns the issues reported meanwhile.
func issues(_ operation: () async throws -> Void) async rethrows -> [String] {
  let recorder = Recorder()
  try await withIssueReporters([recorder]) { try await operation() }
  // Differences are aligned with spaces of a digit's width.
  return recorder.issues.map { text in String(text.map { $0 == "\u{2007}" ? " " : $0 }) }
}

/// The counter of the architecture documents, written by hand.
struct Counter: Reducer {
  struct State: SynchronizableScalar, Equatable {
    var count = 0
    var isLoading = false
    var fact: String?
    var history = SyncArray<Int>()
    var marks = SyncMap<String, Int>()

    func encode(into encoder: inout CBOREncoder) { encoder.encode("\(self)") }
    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      throw CBORError(.notAllowed("a type of the tests"), at: decoder.offset)
    }
    init(count: Int = 0) { self.count = count }
    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .text }
  }

  enum Action: SynchronizableAction, SynchronizableScalar, Equatable, CasePathable {
    case increment, factTapped, cancelTapped, delayTapped, refuse, warn, both, forever, noise
    case record(Int)
    case factResponse(String)

    var name: String { "\(self)".split(separator: "(").first.map(String.init) ?? "" }

    func encode(into encoder: inout CBOREncoder) { encoder.encode("\(self)") }
    init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
      throw CBORError(.notAllowed("a type of the tests"), at: decoder.offset)
    }
    static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind { .text }

    struct AllCasePaths: Sendable {
      var factResponse: CasePath<Action, String> {
        CasePath(
          embed: { .factResponse($0) },
          extract: { if case .factResponse(let text) = $0 { text } else { nil } })
      }
      var increment: CasePath<Action, Void> {
        CasePath(embed: { .increment }, extract: { $0 == .increment ? () : nil })
      }
    }
    static var allCasePaths: AllCasePaths { AllCasePaths() }
  }

  @Dependency(\.clock) var clock

  func reduce(into state: inout State, action: Action) throws(Rejection) -> Effect<Action> {
    switch action {
    case .increment: state.count += 1
    case .factTapped:
      state.isLoading = true
      state.fact = nil
      return .run(name: "fact") { [count = state.count] send in
        await send(.factResponse("\(count) is a number"))
      }
    case .delayTapped:
      return .run(name: "delay") { [count = state.count, clock] send in
        try await clock.pause(for: .seconds(1))
        await send(.factResponse("\(count), later"))
      }.cancellable(id: "delay")
    case .cancelTapped: return .cancel(id: "delay")
    case .factResponse(let text):
      state.isLoading = false
      state.fact = text
    case .refuse: throw Rejection(.refused, "not today")
    case .warn: return .run(name: "failing") { _ in throw CBORError(.truncated, at: 0) }
    case .both: return .merge(.send(.increment), .send(.factResponse("both")))
    case .forever:
      return .run(name: "forever") { _ in try await Task.sleep(for: .seconds(1_000_000)) }
    case .record(let number):
      state.history.append(number)
      state.marks["\(number)"] = number
    case .noise: break
    }
    return .none
  }
}
