public import Lockstep
public import Values

/// The names and paths of a document action, with those of all actions inside a transaction.
extension DocumentAction: PathNaming {
  public var heldNames: [String] {
    var names: Set<Case> = []
    forEach { names.insert($0.kind) }
    return names.sorted { $0.rawValue < $1.rawValue }.map(\.name)
  }

  public var readPaths: [Path] {
    var paths: [Path] = []
    forEach { action in
      switch action {
      case .test(let path, _): paths.append(path)
      case .move(let source, _), .copy(let source, _): paths.append(source)
      case .set, .merge, .remove, .increment, .append, .insert, .replace, .transaction: break
      }
    }
    return paths
  }

  public var writtenPaths: [Path] {
    var paths: [Path] = []
    forEach { action in
      switch action {
      case .set(let path, _), .merge(let path, _), .remove(let path), .increment(let path, _),
        .append(let path, _), .insert(let path, _), .replace(let path, _), .copy(_, let path):
        paths.append(path)
      case .move(let source, let target):
        paths.append(source)
        paths.append(target)
      case .test, .transaction: break
      }
    }
    return paths
  }

  /// Pass the action and all actions inside it to `body`.
  func forEach(_ body: (DocumentAction) -> Void) {
    body(self)
    guard case .transaction(let actions) = self else { return }
    for action in actions { action.forEach(body) }
  }
}

extension DocumentAction: FootprintTelling {
  /// The footprint of a transaction is the largest one of the actions inside it.
  public var footprint: ActionFootprint {
    var largest = ActionFootprint.smaller
    forEach { action in
      switch action {
      case .remove, .test, .transaction: break
      case .set, .increment, .replace: largest = max(largest, .same)
      case .merge, .append, .insert, .move, .copy: largest = .larger
      }
    }
    return largest
  }
}
