import Foundation
import Testing

/// The daemon of Scripts/counts is built in release mode, where swift-syntax would take minutes. So
/// what the macros make of its feature is in the tree, and this holds it to them.
@Suite struct TypedCounterTests {
  private let declared = """
    import Lockstep

    struct Counter: Reducer {
      @ObservableState struct State: Equatable {
        var count = 0
      }

      @Action enum Action: Equatable, Sendable {
        case increment
      }

      func reduce(into state: inout State, action: Action) -> Effect<Action> {
        switch action {
        case .increment: state.count += 1
        }
        return .none
      }
    }
    """

  @Test func `the typed counter is what the macros make of it`() throws {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../TypedCounter/Counter.swift").standardizedFileURL
    let made =
      "// swift-format-ignore-file\n// What the macros make of TypedCounterTests.swift. Write it anew:\n"
      + "// LOCKSTEP_WRITE_EXPANSIONS=1 swift test --filter TypedCounterTests\n\n"
      + expansion(of: declared).text + "\n"
    if ProcessInfo.processInfo.environment["LOCKSTEP_WRITE_EXPANSIONS"] != nil {
      try made.write(to: file, atomically: true, encoding: .utf8)
    }
    #expect(try String(contentsOf: file, encoding: .utf8) == made)
  }
}
