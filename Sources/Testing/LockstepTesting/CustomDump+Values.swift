public import CustomDump
public import Lockstep
public import Values

extension SyncMap: CustomDumpReflectable {
  /// As a dictionary, in the order of the keys.
  public var customDumpMirror: Mirror {
    let entries = sorted { Key.precedes($0.key, $1.key) }
    return Mirror(
      self, unlabeledChildren: entries.map { (key: $0.key, value: $0.value) },
      displayStyle: .dictionary)
  }
}

extension SyncArray: CustomDumpReflectable {
  /// As an array.
  public var customDumpMirror: Mirror {
    Mirror(self, unlabeledChildren: Array(self), displayStyle: .collection)
  }
}

extension SyncIdentifiedArray: CustomDumpReflectable {
  /// As an array.
  public var customDumpMirror: Mirror {
    Mirror(self, unlabeledChildren: Array(self), displayStyle: .collection)
  }
}

extension Timestamp: CustomDumpStringConvertible {
  public var customDumpDescription: String { description }
}

extension UniqueID: CustomDumpStringConvertible {
  public var customDumpDescription: String { "UniqueID(\(description))" }
}
