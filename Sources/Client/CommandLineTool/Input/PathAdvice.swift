import Documents
import EventLoop
import Lockstep
import LockstepClient
import SocketPaths
import Values
import Wire

// Advice on an action whose path leads nowhere.

extension Client {
  /// The failure of an action that the daemon rejected. If an object on its path lacks a member, it
  /// says what the object has, and how to make the member.
  func failure(
    of action: DocumentAction, _ rejection: RejectionMessage, _ options: GlobalOptions
  ) async -> Failure {
    let error = ClientError.rejected(rejection)
    var failure = Failure(error) ?? Failure(.refused, "\(error).")
    // For a transaction, the daemon's sentence says which part failed, and that part saw another
    // state.
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

  /// The member of the path that the nearest value lacks; nil if that is unknown, or no object.
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
  /// A sentence on the members that the object has.
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

  /// The command that puts the value there and makes the objects on the way; nil if it would do
  /// something else, or would be too long to read.
  func merge(of value: Value) -> String? {
    // With one key missing no object needs to be made. A number may be meant for an array. A
    // sentence that asks for another name means that the key was probably mistyped.
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

  /// A text as one word of a shell command, in quotes.
  private static func quoted(_ text: String) -> String {
    "'\(text.replacing("'", with: #"'\''"#))'"
  }
}

extension DocumentAction {
  /// The value that the action puts where there is none; nil if it changes only existing values.
  fileprivate var newValue: Value? {
    switch self {
    case .set(_, let value), .insert(_, let value), .increment(_, by: let value): value
    case .append(_, let value): [value]
    case .merge, .remove, .replace, .test, .move, .copy, .transaction: nil
    }
  }
}

extension Value {
  /// Whether a merge would remove a part of the value instead of putting it.
  fileprivate var hasNullMember: Bool {
    switch self {
    case .null: true
    case .object(let entries): entries.contains { $0.value.hasNullMember }
    case .bool, .integer, .unsigned, .double, .text, .bytes, .array: false
    }
  }
}
