import DaemonCore
import Lockstep
import Simulator
import Testing
import Values

@Suite struct SimulationTests {
  /// Some hundred worlds, in portions that run in parallel; `Scripts/simulate` runs thousands.
  @Test(arguments: 0..<40)
  func `whatever happens, every mirror is true`(portion: UInt64) {
    for seed in (portion * 15 + 1)...(portion * 15 + 15) {
      #expect(throws: Never.self) {
        switch seed % 3 {
        case 0:
          var simulation = Simulation(seed: seed, of: .document)
          _ = try simulation.run(steps: 200)
        case 1:
          var simulation = Simulation(seed: seed, of: .counters)
          _ = try simulation.run(steps: 200)
        default:
          var simulation = Simulation(seed: seed, of: .errands)
          _ = try simulation.run(steps: 200)
        }
      }
    }
  }

  @Test(arguments: 0..<10)
  func `every mirror of an ordered state is true`(portion: UInt64) {
    for seed in (portion * 5 + 1)...(portion * 5 + 5) {
      #expect(throws: Never.self) {
        var simulation = Simulation(seed: seed, of: .cards)
        _ = try simulation.run(steps: 200)
      }
    }
  }

  @Test(arguments: 0..<8)
  func `every mirror of a client with a partial view is true`(portion: UInt64) {
    for seed in (portion * 3 + 1)...(portion * 3 + 3) {
      #expect(throws: Never.self) {
        var simulation = Simulation(seed: seed, of: .document) { $0.drawViews(seed: seed) }
        _ = try simulation.run(steps: 200)
      }
    }
  }

  @Test(arguments: 0..<8)
  func `no action shows twice, and none disappears before the daemon has it`(portion: UInt64) {
    var counts: [String: Int] = [:]
    for seed in (portion * 10 + 1)...(portion * 10 + 10) {
      func run<R, M>(_ feature: SimulatedFeature<R, M>) throws {
        var simulation = Simulation(seed: seed, of: feature) {
          $0.optimism = 700
          if portion % 4 == 0, seed % 5 == 0 { $0.drawViews(seed: seed) }
        }
        counts.merge(try simulation.run(steps: 200).counts) { $0 + $1 }
      }
      #expect(throws: Never.self) {
        switch portion % 4 {
        case 0, 1: try run(.document)
        case 2: try run(.counters)
        default: try run(.cards)
        }
      }
    }
    #expect(counts["shown at once", default: 0] > 0)
  }

  @Test func `what shows is reduced from the confirmed state, and goes on from what showed`() throws
  {
    var counts: [String: Int] = [:]
    for seed in UInt64(1)...20 {
      var simulation = Simulation(seed: seed, of: .cards) { $0.optimism = 700 }
      counts.merge(try simulation.run(steps: 200).counts) { $0 + $1 }
    }
    for name in ["predictions", "predictions continued"] {
      #expect(counts[name, default: 0] > 0, "\(name)")
    }
  }

  @Test func `what shows in a row is what the whole feature makes of the row's actions`() throws {
    var counts: [String: Int] = [:]
    for seed in UInt64(1)...40 {
      var simulation = Simulation(seed: seed, of: .dealtCards) { $0.optimism = 700 }
      counts.merge(try simulation.run(steps: 200).counts) { $0 + $1 }
    }
    for name in ["predictions", "predictions continued", "predictions of parts", "effects"] {
      #expect(counts[name, default: 0] > 0, "\(name)")
    }
  }

  @Test(arguments: 0..<12)
  func `mirrors, journals and effects follow a daemon that jumps and is paused`(
    portion: UInt64
  ) throws {
    var jumps = 0
    for seed in (portion * 5 + 1)...(portion * 5 + 5) {
      func run<R, M>(_ feature: SimulatedFeature<R, M>) throws {
        var simulation = Simulation(seed: seed, of: feature) { $0.administer() }
        jumps += try simulation.run(steps: 300).counts["jumps"] ?? 0
      }
      switch portion % 4 {
      case 0, 1: try run(.document)
      case 2: try run(.counters)
      default: try run(.errands)
      }
    }
    #expect(jumps > 0)
  }

  /// Seeds that once failed, with the reason.
  @Test(arguments: [
    // The server read the hello of an abandoned connection after that of the next one, and gave the
    // session back to the old one.
    (21374, 2500), (22107, 2500),
    // A patch for a client that had lagged was based on a revision of other scopes.
    (75, 20), (10, 150),
    // A client that reconnected and repeated a durable action was told that it is durable too
    // early.
    (174, 200),
  ])
  func `a seed that once failed succeeds`(seed: UInt64, steps: Int) throws {
    var simulation = Simulation(seed: seed, of: .document)
    _ = try simulation.run(steps: steps)
  }

  @Test func `one seed gives one run, bit for bit`() throws {
    for seed in UInt64(1)...20 {
      var (first, second) = (
        Simulation(seed: seed, of: .document), Simulation(seed: seed, of: .document)
      )
      let (a, b) = (try first.run(steps: 200), try second.run(steps: 200))
      #expect(a.trace == b.trace)
      #expect(a.counts == b.counts)
    }
  }

  @Test func `one seed gives one run of the effects too`() throws {
    for seed in UInt64(1)...20 {
      var (first, second) = (
        Simulation(seed: seed, of: .errands), Simulation(seed: seed, of: .errands)
      )
      let (a, b) = (try first.run(steps: 200), try second.run(steps: 200))
      #expect(a.trace == b.trace)
      #expect(a.counts == b.counts)
    }
  }

  @Test func `effects are started, cancelled, lost and limited`() throws {
    var counts: [String: Int] = [:]
    for seed in UInt64(1)...60 {
      var simulation = Simulation(seed: seed, of: .errands)
      counts.merge(try simulation.run(steps: 300).counts) { $0 + $1 }
    }
    for name in Self.effectPaths { #expect(counts[name, default: 0] > 0, "\(name)") }
  }

  private static let effectPaths = [
    "effects", "effects cancelled", "effects failed", "effects lost", "full turns", "hushes",
    "crashes", "inside: changed", "inside: unchanged", "clients: accepted", "clients: changed",
    "clients: rejected", "clients: swallowed", "clients: unchanged",
    "log: An action was sent to a child that is not there, and is ignored by it",
  ]

  @Test func `every path of the protocol is exercised`() throws {
    var counts: [String: Int] = [:]
    for seed in UInt64(1)...150 {
      var simulation = Simulation(seed: seed, of: .document)
      counts.merge(try simulation.run(steps: 300).counts) { $0 + $1 }
    }
    for name in Self.paths { #expect(counts[name, default: 0] > 0, "\(name)") }
  }

  private static let paths = [
    "answers", "blocks", "clones", "closes", "crashes", "cuts", "jobs", "restarts", "stalls",
    "rest of what was missed", "stops", "strangers", "trials", "goodbye: done",
    "goodbye: frameTooLarge", "goodbye: limit",
    "goodbye: malformed", "goodbye: outOfOrder", "goodbye: replaced", "goodbye: stalled",
    "goodbye: stopping", "goodbye: unknownMessage", "goodbye: version",
    "subscribed: current none", "subscribed: patch none", "subscribed: refused duplicate",
    "subscribed: refused limit", "subscribed: snapshot ahead", "subscribed: snapshot epoch",
    "subscribed: snapshot history", "subscribed: snapshot lagged",
    "subscribed: snapshot noPosition",
  ]
}
