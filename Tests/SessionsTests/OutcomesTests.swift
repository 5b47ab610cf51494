import Testing
import Wire

@testable import DaemonCore

/// The outcomes that a session keeps, which a resumption acknowledges.
@Suite struct OutcomesTests {
  /// Actions whose sequence numbers have gaps, because others act in between.
  private func outcomes(_ count: UInt64, rejecting every: UInt64 = .max) -> Outcomes {
    var outcomes = Outcomes(Limits())
    for number in 1...count {
      let outcome: Acknowledgement.Outcome =
        number % every == 0
        ? .rejected(RejectionMessage(code: 8, message: "no", path: nil)) : .reduced
      outcomes.append(outcome, revision: 3 * number, mark: .applied, sequence: 5 * number)
    }
    return outcomes
  }

  @Test func `ten thousand interleaved actions are kept in a few runs`() {
    let kept = outcomes(10_000).kept
    #expect(kept.count <= 20)
    #expect(kept.first?.first == 1)
    #expect(kept.last?.last == 10_000)
    for (run, next) in zip(kept, kept.dropFirst()) { #expect(run.last + 1 == next.first) }
  }

  @Test func `the newest outcomes have their sequence numbers, and merged ones have none`() {
    let kept = outcomes(1000).kept
    for run in kept.suffix(6) {
      #expect(run.first == run.last)
      #expect(run.sequence == 5 * run.first)
    }
    let merged = kept.filter { $0.first < $0.last }
    #expect(merged.allSatisfy { $0.sequence == nil && $0.revision == 3 * $0.last })
    #expect(!merged.isEmpty)
  }

  @Test(arguments: [1, 2, 5] as [UInt64])
  func `an outcome is forgotten as soon as it is older than the window`(window: UInt64) {
    var limits = Limits()
    limits.window = Int(window)
    var outcomes = Outcomes(limits)
    for number in 1...20 as ClosedRange<UInt64> {
      // No two are merged.
      let rejection = RejectionMessage(code: 8, message: "\(number)", path: nil)
      outcomes.append(.rejected(rejection), revision: 3, mark: .applied, sequence: nil)
      #expect(outcomes.oldest == (number > window ? number - window + 1 : 1))
    }
  }

  @Test func `every action keeps its outcome`() {
    let outcomes = outcomes(5000, rejecting: 7)
    var next: UInt64 = 1
    outcomes.forEach(from: 1, through: 5000, into: &next) { run, next in
      #expect(run.first == next)
      next = run.last + 1
      for number in run.first...run.last {
        if case .rejected = run.outcome {
          #expect(number % 7 == 0)
        } else {
          #expect(run.outcome == .reduced && number % 7 != 0)
        }
      }
    }
    #expect(next == 5001)
  }

  @Test func `actions of one batch are one run with one sequence number`() {
    var outcomes = Outcomes(Limits())
    for number: UInt64 in 1...500 {
      outcomes.append(.reduced, revision: number, mark: .applied, sequence: 100 + number)
    }
    #expect(
      outcomes.kept == [
        Acknowledgement(first: 1, last: 500, revision: 500, .reduced, sequence: 101)
      ]
    )
  }
}
