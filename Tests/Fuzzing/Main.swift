// Theory of operation
//
// One program holds every target; its name (`fuzz-value`) selects the one that runs. A target takes
// bytes and returns, or stops in `require`. libFuzzer does the rest: it generates the bytes,
// measures which code they reach, and keeps those that reach new code.
//
// `Scripts/fuzz` runs it and builds the modules with coverage; SwiftPM does not know this program.
// Input that once broke a target is kept, minimised, in `regressions/TARGET`, in a file whose name
// says what was wrong, and is replayed first. To run one file: `.build/fuzz/fuzz-TARGET FILE`.

/// The targets, by name.
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
  "rows": fuzzRows,
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

/// Stops here unless the property holds; libFuzzer keeps the bytes that broke it.
@inline(__always)
func require(_ condition: Bool, _ property: @autoclosure () -> String) {
  if !condition { fatalError("Broken: \(property())") }
}
