import CBOR
import Values

/// Converts patches of documents from their form on the wire to JSON Patch (RFC 6902).
///
/// A member that changes is an `add`, which replaces an existing one, so that no old value is
/// needed. Splices of an array become `remove`s and `add`s, in order.
enum PatchOperations {
  /// The array of operations that have the effect of the patch. Paths begin at the patched value.
  static func operations(of patch: [UInt8]) throws(CBORError) -> Value {
    let result = Result { () throws(CBORError) in
      try CBORDecoder.read(patch) { (decoder) throws(CBORError) in
        var operations: [Value] = []
        try append(&decoder, at: Path(), &operations)
        return operations
      }
    }
    return .array(TreeArray(try result.get()))
  }

  private static func append(
    _ decoder: inout CBORDecoder, at path: Path, isElement: Bool = false,
    _ operations: inout [Value]
  ) throws(CBORError) {
    if decoder.undefinedIfNext() {
      operations.append(["op": "remove", "path": .text(path.pointer)])
    } else if let value = try Value.replacement(from: &decoder, seed: .unseeded) {
      operations.append(
        ["op": isElement ? "replace" : "add", "path": .text(path.pointer), "value": value])
    } else if try decoder.peekMajor() == .map {
      for _ in 0..<(try decoder.map()) {
        let key = PathKey.text(try decoder.text())
        try append(&decoder, at: Path(path.keys + [key]), &operations)
      }
      decoder.close()
    } else {
      try appendArray(&decoder, at: path, &operations)
    }
  }

  /// The patch of an array: `[[at, removed, [inserted…], …], {index: patch, …}]`.
  private static func appendArray(
    _ decoder: inout CBORDecoder, at path: Path, _ operations: inout [Value]
  ) throws(CBORError) {
    let start = decoder.offset
    guard try decoder.array() == 2 else {
      throw CBORError(.notAllowed("a patch of an array has two parts"), at: start)
    }
    for _ in 0..<(try decoder.array()) / 3 {
      let at = try decoder.unsigned(as: Int.self)
      let removed = try decoder.unsigned(as: Int.self)
      for _ in 0..<removed {
        operations.append(["op": "remove", "path": .text(path.element(at).pointer)])
      }
      for index in 0..<(try decoder.array()) {
        let value = try Value(from: &decoder, seed: .unseeded)
        operations.append(
          ["op": "add", "path": .text(path.element(at + index).pointer), "value": value])
      }
      decoder.close()
    }
    decoder.close()
    for _ in 0..<(try decoder.map()) {
      let index = try decoder.unsigned(as: Int.self)
      try append(&decoder, at: path.element(index), isElement: true, &operations)
    }
    decoder.close()
    decoder.close()
  }
}

extension Path {
  /// The path of an element of the array here.
  func element(_ index: Int) -> Path { Path(keys + [.integer(Int64(index))]) }
}
