import DaemonCore
import Lockstep

/// A daemon's process. A class, because the compiler copies an optional structure from which generic code
/// reads: a server has hundreds of fields, and was a tenth of a simulation's time.
///
/// Sendable: a simulation runs on one thread at a time, and nothing else uses its daemon.
final class SimulatedDaemon<R: Reducer>: @unchecked Sendable {
  var server: Server<Witness<R>>

  init(_ server: Server<Witness<R>>) { self.server = server }
}
