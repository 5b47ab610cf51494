import DaemonCore
import Lockstep
import Simulator
import Testing
import Values

/// A deliberate fault, and the number of seeds in which it must be found.
struct Mutant: Sendable, CustomTestStringConvertible {
  let name: String
  var seeds: UInt64 = 60
  /// A feature that reveals it.
  var feature = Feature.document
  let plant: @Sendable (inout SimulationPlan) -> Void

  enum Feature { case document, errands, cards, dealtCards }

  var testDescription: String { name }

  static let all =
    [
      Mutant(name: "a patch is dropped") { $0.faults.droppedRevision = 5 },
      Mutant(name: "acknowledgements overtake patches") { $0.faults.acknowledgesEarly = true },
      Mutant(name: "what is sent again is done again") { $0.faults.appliesTwice = true },
      Mutant(name: "the order of a dictionary is followed") {
        $0.faults.followsDictionaryOrder = true
      },
      Mutant(name: "the run of a position is forgotten", seeds: 200) {
        $0.faults.forgetsRun = true
      },
      Mutant(name: "mirrors do not check the base of a patch") {
        $0.faults.repeatsFrames = true
        $0.skipsBaseCheck = true
        $0.toleratesDivergence = true
      },
      Mutant(name: "who drains gets no difference") { $0.faults.skipsCatchUp = true },
      Mutant(name: "who does not read is read from") { $0.faults.neverPauses = true },
      Mutant(name: "who reads again is not read from") { $0.faults.neverResumes = true },
      Mutant(name: "a large action is not held until it has been decoded") {
        $0.faults.readsBehindLargeActions = true
      },
      Mutant(name: "something is composed for who does not read") {
        $0.faults.ignoresBackPressure = true
      },
      Mutant(name: "a snapshot has the wrong revision") { $0.faults.mislabelsSnapshots = true },
      Mutant(name: "a checkpoint of the past has the wrong revision") {
        $0.faults.mislabelsCheckpoints = true
      },
      Mutant(name: "a checkpoint that a journal tells of has the wrong revision", seeds: 200) {
        $0.faults.mislabelsFormerCheckpoints = true
        $0.keepsAll()
      },
      Mutant(name: "a jump keeps what has overtaken it", seeds: 200) {
        $0.faults.jumpsFromLate = true
        $0.administer()
      },
      Mutant(name: "actions are done during a pause") {
        $0.faults.actsWhilePaused = true
        $0.administer()
      },
      Mutant(name: "what effects tell is heard during a pause", seeds: 200, feature: .errands) {
        $0.faults.hearsWhilePaused = true
        $0.administer()
      },
      Mutant(name: "what effects told during a pause is lost", seeds: 200, feature: .errands) {
        $0.faults.losesHeldNews = true
        $0.administer()
      },
      Mutant(name: "an acknowledgement is lost on resuming") {
        $0.faults.losesRepeatedAcknowledgements = true
      },
      Mutant(name: "held states are kept for who is gone") { $0.faults.leaksHeldStates = true },
      Mutant(name: "effects start before their patches", feature: .errands) {
        $0.faults.startsEffectsEarly = true
      },
      Mutant(name: "effects outlive the client that owns them", feature: .errands) {
        $0.faults.leaksOwnedEffects = true
      },
      Mutant(name: "what is not committed is acknowledged as durable") {
        $0.faults.acknowledgesUncommitted = true
        $0.keepsAll()
      },
      Mutant(name: "effects begin before what led to them is committed", feature: .errands) {
        $0.faults.startsEffectsUncommitted = true
        $0.keepsAll()
      },
      Mutant(name: "what became of actions that changed nothing is not kept") {
        $0.faults.forgetsAnswers = true
        $0.keepsAll()
      },
      Mutant(name: "a mirror that is ahead of what was kept is believed") {
        $0.faults.trustsFormerRuns = true
        $0.keepsAll()
      },
      Mutant(name: "a snapshot is not filtered") {
        $0.faults.sendsWholeSnapshots = true
        $0.drawViews(seed: UInt64($0.socketBytes + $0.clients))
      },
      Mutant(name: "the difference for who lagged is not filtered") {
        $0.faults.sendsWholeDifferences = true
        $0.drawViews(seed: UInt64($0.socketBytes + $0.clients))
      },
      Mutant(name: "what was foreseen of a large patch is not filtered") {
        $0.faults.sendsWholeForeseen = true
        $0.limits.largeActionBytes = 60
        $0.drawViews(seed: UInt64($0.socketBytes + $0.clients))
      },
      Mutant(name: "decided actions are announced after their changes") {
        $0.faults.announcesLate = true
        $0.optimism = 700
      },
      Mutant(name: "what effects send is never left for the next turn", feature: .errands) {
        $0.faults.neverYields = true
      },
      Mutant(name: "an action draws other numbers when it is reduced again", feature: .dealtCards) {
        $0.drawsAnew = true
        $0.optimism = 700
      },
    ] + optimism(of: .document) + optimism(of: .cards) + optimism(of: .dealtCards)

  /// The faults of clients that show actions before they are decided.
  private static func optimism(of feature: Feature) -> [Mutant] {
    func mutant(_ name: String, _ plant: @escaping @Sendable (inout SimulationPlan) -> Void)
      -> Mutant
    {
      Mutant(name: "\(name) (\(feature))", feature: feature) {
        plant(&$0)
        $0.optimism = 700
      }
    }
    return [
      mutant("a mirror shows a value without asking what is in it") {
        $0.skipsDecisionCheck = true
      },
      mutant("a rejected action goes on showing") { $0.keepsRejected = true },
      mutant("an action is reduced on what showed, though the state below it has changed") {
        $0.ignoresLineage = true
      },
    ]
  }

  /// The first seed that reveals the fault, and the failure.
  func catching() -> (seed: UInt64, SimulationFailure)? {
    for seed in 1...seeds {
      do throws(SimulationFailure) {
        switch feature {
        case .document:
          var simulation = Simulation(seed: seed, of: .document, plant)
          _ = try simulation.run(steps: 300)
        case .errands:
          var simulation = Simulation(seed: seed, of: .errands, plant)
          _ = try simulation.run(steps: 300)
        case .cards:
          var simulation = Simulation(seed: seed, of: .cards, plant)
          _ = try simulation.run(steps: 300)
        case .dealtCards:
          var simulation = Simulation(seed: seed, of: .dealtCards, plant)
          _ = try simulation.run(steps: 300)
        }
      } catch {
        return (seed, error)
      }
    }
    return nil
  }
}

@Suite struct MutantTests {
  @Test(arguments: Mutant.all)
  func `a mutant is caught`(mutant: Mutant) throws {
    let (seed, failure) = try #require(mutant.catching())
    print("\(mutant.name): caught by seed \(seed): \(failure.message)")
  }

  @Test func `repeated frames are harmless, because mirrors check the base`() throws {
    for seed in UInt64(1)...60 {
      var simulation = Simulation(seed: seed, of: .document) { $0.faults.repeatsFrames = true }
      _ = try simulation.run(steps: 300)
    }
  }

  @Test func `without held states every mirror stays true`() throws {
    for seed in UInt64(1)...60 {
      var simulation = Simulation(seed: seed, of: .document) { $0.faults.forgetsHeldStates = true }
      _ = try simulation.run(steps: 300)
    }
  }
}

extension SimulationPlan {
  /// A daemon with synchronous durability, on a slow disk, which crashes often.
  fileprivate mutating func keepsAll() {
    durability = .sync
    durableActions = 500
    diskDelay = 800
    crashes = 8
    limits.sessionGrace = .seconds(100_000)
    limits.detachedSessions = 100
  }
}
