import ClientCore
public import Lockstep
public import Values

/// What optimistic mirrors show actions in: the whole of a state, or parts of one kind, which have a
/// reducer of their own.
public protocol SimulatedPart<Whole>: Sendable {
  /// The actions on the whole.
  associatedtype Whole: SynchronizableAction
  /// Reduces the actions on one part.
  associatedtype Child: Reducer

  /// How the part at a path reduces; nil if there is none of this kind.
  func part(at path: Path) -> (child: Child, actions: CasePath<Whole, Child.Action>)?

  /// Whether an action on the whole is one on any of the parts. Those change no part but their own, so
  /// that all of them, reduced in the whole, give what each part shows.
  func isOfParts(_ action: Whole) -> Bool
}

extension SimulatedPart {
  /// A mirror of a part, of the part's own type.
  func subscribe(
    _ session: inout ClientSession, to path: Path, everyRevision: Bool,
    into commands: inout [ClientSession.Command]
  ) -> UInt64 {
    session.subscribe(
      to: path, as: Child.State.self, everyRevision: everyRevision, into: &commands)
  }
}

/// The whole, as a part of itself.
struct WholeState<R: Reducer>: SimulatedPart {
  let reducer: R

  func part(at path: Path) -> (child: R, actions: CasePath<R.Action, R.Action>)? {
    guard path.keys.isEmpty else { return nil }
    return (reducer, CasePath(embed: { $0 }, extract: { $0 }))
  }

  func isOfParts(_ action: R.Action) -> Bool { true }
}
