import Lockstep
public import Values

/// A right that a peer lacks.
public enum MissingRight: Hashable, Sendable, CustomStringConvertible {
  case connect
  case read(Path)
  case act(String)
  case write(Path)

  public var description: String {
    switch self {
    case .connect: "connect"
    case .read(let path): "read \(path)"
    case .act(let name): "act \(name)"
    case .write(let path): "write \(path)"
    }
  }
}

extension Policy {
  /// Names the rule that denies a right to a peer that lacks it, and the place where the rule is
  /// written, for a person who may change the policy. O(the patterns of the rules that apply to the
  /// peer).
  public func explanation(
    of right: MissingRight, uid: UInt64, gid: UInt64, groups: [UInt64] = []
  ) -> String {
    let known = rules.indices.filter { rules[$0].applies(to: uid, [gid] + groups) }
    for index in known {
      if let denial = rules[index].denial(of: right) { return "\(denial)\(place(of: index))" }
    }
    if case .write = right {
      // The right to write may be implied by the right to read, and is then denied with it.
      for index in known {
        if let pattern = rules[index].denyRead.first(where: right.meets) {
          return "no `write` grants it, and deny-read \(pattern)\(place(of: index)) takes it from "
            + "what may be read"
        }
      }
    }
    switch source {
    case .program: return "no rule grants it to user \(uid)"
    case .standard: return "there is no policy file (--policy)"
    case .file(let path, _): return "no rule in \(path) grants it to user \(uid)"
    }
  }

  private func place(of index: Int) -> String {
    guard case .file(let path, let lines) = source, lines.indices.contains(index) else { return "" }
    return " of the rule at \(path):\(lines[index])"
  }
}

extension Rule {
  /// The part of the rule that denies the right, as it is written; nil when none does.
  fileprivate func denial(of right: MissingRight) -> String? {
    switch right {
    case .connect: mayConnect == false ? "connect: false" : nil
    case .read: denyRead.first(where: right.meets).map { "deny-read \($0)" }
    case .write: denyWrite.first(where: right.meets).map { "deny-write \($0)" }
    case .act(let name): denyAct.first { $0.covers(name) }.map { "deny-act \($0)" }
    }
  }
}

extension MissingRight {
  /// Whether a pattern matches the path, a path above it or a path below it.
  fileprivate func meets(_ pattern: PathPattern) -> Bool {
    switch self {
    case .connect, .act: false
    case .read(let path), .write(let path):
      zip(pattern.steps, path.keys).allSatisfy { step, key in step == .any || step == .key(key) }
    }
  }
}
