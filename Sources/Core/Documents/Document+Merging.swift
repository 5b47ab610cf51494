public import Lockstep
public import Values

extension Document {
  /// Merge a patch into the value at a path (RFC 7386, section 2): members of the patch that are
  /// null are removed, objects merge into objects, anything else replaces. An absent member becomes
  /// an object first; an element must exist. O(size of the patch).
  public mutating func merge(_ patch: Value, at path: Path) throws(Rejection) {
    let patch = patch.adopting(seed)
    guard case .object(let members) = patch, isObject(at: path) else {
      return try put(patch.withoutNulls, at: path, .merge)
    }
    var keys = path.keys
    try root.descend(&keys, &notes, to: keys.count) { place, keys, notes in
      place.merge(members, &keys, &notes)
    }
  }

  private func isObject(at path: Path) -> Bool {
    guard case .object? = root.value(at: path) else { return false }
    return true
  }
}

extension Value {
  /// Merge the members of a patch into this object.
  fileprivate mutating func merge(
    _ patch: TrieMap<String, Value>, _ keys: inout [PathKey], _ notes: inout EditNotes
  ) {
    guard case .object(var entries) = self else { return }
    self = .null
    for (name, change) in patch {
      keys.append(.text(name))
      switch change {
      case .null:
        if let old = entries.removeValue(forKey: name) { notes.note(keys, was: old) }
      case .object(let members) where entries.hasObject(name):
        entries.modifyValue(forKey: name) { $0.merge(members, &keys, &notes) }
      default:
        let old = entries.updateValue(change.withoutNulls, forKey: name)
        notes.note(keys, was: old)
      }
      keys.removeLast()
    }
    self = .object(entries)
  }

  /// The result of merging the patch into an absent value: the patch without members that are null.
  /// Elements of arrays are not members.
  fileprivate var withoutNulls: Value {
    guard case .object(let members) = self else { return self }
    var result = members
    for (name, member) in members {
      switch member {
      case .null: result.removeValue(forKey: name)
      case .object: result.updateValue(member.withoutNulls, forKey: name)
      default: break
      }
    }
    return .object(result)
  }
}

extension TrieMap<String, Value> {
  fileprivate func hasObject(_ name: String) -> Bool {
    guard case .object? = self[name] else { return false }
    return true
  }
}
