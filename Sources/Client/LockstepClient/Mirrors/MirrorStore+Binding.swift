public import Lockstep
public import LockstepStore
public import Values
import Wire

extension MirrorStore where F.Action: BindableAction, F.Action.Setting.BoundState == F.State {
  /// A field that may be set (`@Settable`). Setting it posts the action without waiting; reading it
  /// gives the value that the store shows: the new one at once in a store that was made by
  /// `connect(optimistic:)` (of a daemon that knows version 3 of the protocol), and in others a little
  /// later, when the daemon has it. The binding retains the store.
  public func binding<Value: Synchronizable>(
    _ field: SettableKeyPath<F.Action.Setting, Value>
  ) -> FieldBinding<Value> {
    let field = F.Action.Setting.allFields[keyPath: field]
    return FieldBinding(
      read: { self[dynamicMember: field.property] },
      write: {
        self.connection.post(
          payload: self.actions.encode(.set(field.setting($0))), .applied,
          isOptimistic: self.predictor != nil)
      })
  }
}
