import Lockstep
import LockstepServer
import TodosFeature

@main struct TodosDaemon: LockstepDaemon {
  var feature: some Reducer { Todos() }
}
