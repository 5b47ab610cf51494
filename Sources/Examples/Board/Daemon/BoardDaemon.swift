import ArgumentParser
import BoardFeature
import Lockstep
import LockstepServer

/// Owns a board.
@main struct BoardDaemon: LockstepDaemon {
  static let configuration = DaemonConfiguration(
    name: "boardd", abstract: "Own a board of cards that several people move about.")

  var feature: some Reducer { Board() }
}
