public import Lockstep
public import LockstepStore
public import Values

extension MirrorStore where F.Action: BindableAction, F.Action.Setting.BoundState == F.State {
  /// A field that may be set (`@Settable`). Setting it posts the action without waiting; reading it
  /// gives the daemon's value, as the store shows it, so the new one follows a little later. The
  /// binding retains the store.
  public func binding<Value: Synchronizable>(
    _ field: SettableKeyPath<F.Action.Setting, Value>
  ) -> FieldBinding<Value> {
    let field = F.Action.Setting.allFields[keyPath: field]
    return FieldBinding(
      read: { self[dynamicMember: field.property] },
      write: { self.post(.set(field.setting($0))) })
  }
}
