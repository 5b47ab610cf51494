/// The feature of a part that may be absent, such as a row, in which actions show at once.
///
/// It reduces by the part's own reducer while the part is there, and ignores actions while it is not, as
/// the feature around it does (`forEach`, `ifLet`).
public struct OptionalPart<Child: Reducer>: Reducer {
  public typealias State = Child.State?
  public typealias Action = Child.Action
  public typealias Body = Never

  private let child: Child

  package init(_ child: Child) { self.child = child }

  public static var usesContext: Bool { Child.usesContext }

  public func reduce(
    into state: inout Child.State?, action: Child.Action
  ) throws(Rejection) -> Effect<Child.Action> {
    try state.modify { (state) throws(Rejection) in
      try child.reduce(into: &state, action: action)
    } ?? .none
  }
}
