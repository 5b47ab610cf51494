/// What the Swift runtime calls as it is loaded, instead of installing handlers of signals that print a
/// backtrace after a crash (Scripts/build-c: `--wrap`): the signals of a program in C are its own.
/// Returns 0, for success.
@c(__wrap__swift_installCrashHandler)
public func refuseCrashHandler() -> Int32 { 0 }
