public import Values

extension DocumentAction {
  /// The action with every path and every value replaced, also inside a transaction. With each value
  /// goes the path at which it is put, added or compared; of one that is appended, that of a new
  /// element. O(the action).
  public func mapped(path: (Path) -> Path, value: (Value, Path) -> Value) -> DocumentAction {
    switch self {
    case .set(let place, let new): .set(path(place), value(new, place))
    case .merge(let place, let patch): .merge(path(place), value(patch, place))
    case .remove(let place): .remove(path(place))
    case .increment(let place, let amount): .increment(path(place), by: value(amount, place))
    case .append(let place, let element):
      .append(path(place), value(element, Path(place.keys + [.text("-")])))
    case .insert(let place, let new): .insert(path(place), value(new, place))
    case .move(let source, let target): .move(from: path(source), to: path(target))
    case .copy(let source, let target): .copy(from: path(source), to: path(target))
    case .test(let place, let expected): .test(path(place), value(expected, place))
    case .transaction(let actions):
      .transaction(actions.map { $0.mapped(path: path, value: value) })
    case .replace(let place, let new): .replace(path(place), value(new, place))
    }
  }
}
