import Documents
import EventLoop
import Lockstep
import LockstepClient
import Values
import Wire

// What to do about an action whose path leads nowhere.

extension Client {
  /// The failure of an action that the daemon rejected: where an object on its path lacks a member,
  /// with what is there, and how to make it.
  func failure(
    of action: DocumentAction, _ rejection: RejectionMessage, _ options: GlobalOptions
  ) async -> Failure {
    let error = ClientError.rejected(rejection)
    var failure = Failure(error) ?? Failure(.refused, "\(error).")
    // Of a transaction the daemon's sentence says which part failed, and saw another state.
    if case .transaction = action { return failure }
    guard Rejection.Code(rawValue: rejection.code) == .badPath, let path = rejection.path,
      let lack = await lack(at: path)
    else { return failure }
    failure.message = "rejected: \(lack.sentence)"
    if let value = action.newValue, let merge = lack.merge(of: value) {
      let socket = options.socket.map { " --socket \(SocketPlace.word($0))" } ?? ""
      failure.message += " lockstep\(socket) \(merge) makes the objects on the way."
    }
    return failure
  }

  /// What the nearest object lacks that a path goes through; nil where it is not known, or no object.
  private func lack(at path: Path) async -> MissingMember? {
    let scope = PathArgument(path).scope
    for count in (0...scope.keys.count).reversed() {
      let ancestor = Path(Array(path.keys.prefix(count)))
      switch await glance(at: ancestor) {
      case .value(let value): return MissingMember(of: path, in: value, at: ancestor)
      case .nothing: continue
      case .unknown: return nil
      }
    }
    return nil
  }
}

/// A member that an object does not have, and that a path goes through.
struct MissingMember {
  /// What the object has.
  let sentence: String
  private let object: Path
  private let missing: [PathKey]

  /// `value` is at `place`, which leads to the path.
  init?(of path: Path, in value: Value, at place: Path) {
    var value = value
    var depth = place.keys.count
    while depth < path.keys.count, let child = value.child(path.keys[depth]) {
      value = child
      depth += 1
    }
    guard case .object = value, depth < path.keys.count else { return nil }
    object = Path(Array(path.keys[..<depth]))
    missing = Array(path.keys[depth...])
    sentence = value.absence(of: Path(missing), at: object)
  }

  /// The command that puts the value there, objects on the way made; nil where it would do something
  /// else, or would be too long to read.
  func merge(of value: Value) -> String? {
    // With one key missing nothing needs to be made, a number may be meant for an array, and where
    // the sentence asks for another name that was probably mistyped.
    guard missing.count > 1, !sentence.hasSuffix("?"), !missing.contains(where: \.mayBeIndex),
      !value.hasNullMember
    else {
      return nil
    }
    let patch = missing.reversed().reduce(value) { inner, key in
      [key.description: inner]
    }
    let text = JSON.text(patch)
    guard text.utf8.count <= 200, (try? JSON.parse(text)) == patch else { return nil }
    return "merge \(Self.quoted(object.pointer)) \(Self.quoted(text))"
  }

  /// A text as a word of a shell's command, in quotes.
  private static func quoted(_ text: String) -> String {
    "'\(text.replacing("'", with: #"'\''"#))'"
  }
}

extension DocumentAction {
  /// What the action puts where nothing stands; nil where it changes only what is there.
  fileprivate var newValue: Value? {
    switch self {
    case .set(_, let value), .insert(_, let value), .increment(_, by: let value): value
    case .append(_, let value): [value]
    case .merge, .remove, .replace, .test, .move, .copy, .transaction: nil
    }
  }
}

extension Value {
  /// Whether a merge would remove instead of put something of the value.
  fileprivate var hasNullMember: Bool {
    switch self {
    case .null: true
    case .object(let entries): entries.contains { $0.value.hasNullMember }
    case .bool, .integer, .unsigned, .double, .text, .bytes, .array: false
    }
  }
}
