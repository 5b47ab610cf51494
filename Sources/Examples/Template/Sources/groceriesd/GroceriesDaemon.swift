import GroceriesFeature
import Lockstep
import LockstepServer

@main struct GroceriesDaemon: LockstepDaemon {
  var feature: some Reducer { Groceries() }
}
