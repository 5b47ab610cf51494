import Lockstep
import LockstepServer

/// A daemon as a user writes it, and compiled as a user compiles it: without a flag. Scripts/counts
/// counts what an action of it costs, in a package of its own.
@main struct TypedCounter: LockstepDaemon { var feature: some Reducer { Counter() } }
