import Access
import DaemonCore
import Documents
import Files
import Lockstep
import SystemPackage
import Values

/// A recording of a stock daemon for others, without what they may not see.
struct Export {
  /// What is left out: what a policy of the recording denies to anybody, and what is named.
  private let patterns: [PathPattern]

  /// Throws if there is nothing to leave out, or the recording cannot be read.
  init(of bytes: [UInt8], without named: [PathPattern]) throws {
    let policies = try RecordingExport<DocumentFeature>.policies(in: bytes)
    let denied = policies.flatMap { $0.rules.flatMap(\.denyRead) }
    var patterns: [PathPattern] = []
    for pattern in denied + named where !patterns.contains(pattern) { patterns.append(pattern) }
    self.patterns = patterns
  }

  var isEmpty: Bool { patterns.isEmpty }

  var leftOut: String { patterns.map(\.description).joined(separator: ", ") }

  func run(
    _ bytes: [UInt8]
  ) throws -> (report: RecordingExport<DocumentFeature>.Report, replaced: Int) {
    let redaction = Shared(Redaction(of: patterns))
    let replacements = RecordingExport<DocumentFeature>.Replacements(
      state: { Document(redaction.value.value($0.root, at: .root, in: $0.root)) },
      action: { action, state in
        action.mapped(
          path: { redaction.value.path($0, in: state.root) },
          value: { redaction.value.value($0, at: $1, in: state.root) })
      },
      path: { redaction.value.path($0, in: $1.root) }, text: { redaction.value.text($0) })
    let export = try RecordingExport(bytes, replacing: replacements, reducer: DocumentFeature())
    return (try export.run(), redaction.value.count)
  }
}

/// One value for several closures.
private final class Shared<Value> {
  var value: Value
  init(_ value: Value) { self.value = value }
}

extension PathPattern {
  /// A pattern as a policy writes it: a JSON Pointer in which a key `*` is any key; nil if it is none.
  init?(argument text: String) {
    guard text != "/" else {
      self = .whole
      return
    }
    var steps: [Step] = []
    for token in text.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
      guard let path = Path(pointer: "/" + token.replacing("~2", with: "*")) else { return nil }
      steps += token == "*" ? [.any] : path.keys.map(Step.key)
    }
    guard text.hasPrefix("/") else { return nil }
    self.init(steps)
  }
}
