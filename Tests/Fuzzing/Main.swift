// Theory of operation
//
// One program holds every target; the name that it is called by (`fuzz-value`) says which runs. A
// target takes bytes and returns quietly, or stops in `require`. Everything else is libFuzzer's:
// it makes the bytes, sees which code they reach, and keeps those that reach new code.
//
// Run by `Scripts/fuzz`, which builds the modules with coverage; SwiftPM knows nothing of this.
// What broke a target once is kept, as small as it gets, in `regressions/TARGET`, in a file whose
// name says what it was, and is replayed first. To look at one: `.build/fuzz/fuzz-TARGET FILE`.

/// What can be fuzzed, by name.
private let targets: [String: @Sendable (Input) -> Void] = [
  "action": fuzzActions,
  "action-json": fuzzActionJSON,
  "client": fuzzClientSession,
  "client-message": fuzzClientMessage,
  "difference": fuzzDifference,
  "frame": fuzzFrames,
  "hand-over": fuzzHandOver,
  "item": fuzzItem,
  "journal": fuzzJournal,
  "json": fuzzJSON,
  "patch": fuzzPatch,
  "schema": fuzzSchema,
  "server": fuzzServer,
  "server-message": fuzzServerMessage,
  "translation": fuzzTranslation,
  "value": fuzzValue,
  "view": fuzzView,
]

private let target: @Sendable (Input) -> Void = {
  let program = CommandLine.arguments[0].split(separator: "/").last ?? ""
  let name = String(program.dropFirst("fuzz-".count))
  guard let target = targets[name] else {
    fatalError("There is no target \"\(name)\"; there are: \(targets.keys.sorted()).")
  }
  return target
}()

@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  target(Input(UnsafeRawBufferPointer(start: start, count: count)))
  return 0
}

/// Stop here unless the property holds: libFuzzer keeps the bytes that broke it.
@inline(__always)
func require(_ condition: Bool, _ property: @autoclosure () -> String) {
  if !condition { fatalError("Broken: \(property())") }
}
