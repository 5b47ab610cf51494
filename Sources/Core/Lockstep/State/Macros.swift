// The code that the macros generate names types of these modules, and so do the users' states.
@_exported public import CBOR
@_exported public import Values

#if Macros
  /// Makes a struct a state: its fields travel one by one, so that a change costs what it touched,
  /// and an observer of one field is not notified of others.
  ///
  ///     @ObservableState struct State: Equatable {
  ///       var count = 0
  ///       var fact: String?
  ///       var todos: SyncMap<Int, Todo> = [:]
  ///       var cards: SyncIdentifiedArray<Card> = []
  ///     }
  ///
  /// Every stored property is a field; its number is its position among those that travel. Computed
  /// and static properties, and `let` with an initial value, are not fields. A field that is
  /// missing, because the peer has none of its name, takes its initial value. Its type is any
  /// `Synchronizable` one; the elements of collections must not be optional. A change to a `let`
  /// rebuilds the struct around it, without running an initializer.
  ///
  /// Two limits of the compiler: a type alias inside the struct that names the type of a field
  /// (`typealias ID = Int`) makes the struct unfit for other states; and an initial value that
  /// refers to another macro's type in a file further on may need its type written out
  /// (`var tab: Tab = Tab()`).
  ///
  /// Fields under `@Settable` may be set by an action: the macro makes `State.Setting` of them, the
  /// value of the case `set(State.Setting)` (`FieldSetting`).
  ///
  /// The macro rejects property observers, which would run again in every mirror, lazy and weak
  /// properties, property wrappers other than `@Pulse`, and types that cannot be decoded.
  ///
  /// An enumeration under `@ObservableState` is a part of a state: it travels whole, as an
  /// `@Action` does. A newer version may add a case, which an older peer decodes as the one marked
  /// `@Fallback`; without one it is disconnected. So the macro warns of an enumeration that has no
  /// such case, unless it is `frozen`: no version will ever add a case.
  @attached(
    extension,
    conformances: ObservableState, SynchronizableScalar, CasePathable,
    names: named(isSame), named(prefetchStorage), named(encode), named(init),
    named(encodeDifference), named(apply), named(digest), named(adopt), named(holdsCollections),
    named(schemaKind), named(visit), named(fields), named(initialValue), named(resetEphemeral),
    named(_travels))
  @attached(
    member,
    names: named(isSame), named(encode), named(init), named(adopt), named(holdsCollections),
    named(schemaKind), named(AllCasePaths), named(allCasePaths), named(Setting), named(_travels))
  @attached(memberAttribute)
  public macro ObservableState(frozen: Bool = false) =
    #externalMacro(module: "LockstepMacros", type: "ObservableStateMacro")

  /// Makes an enumeration an action: it can be sent, and has a readable name and a path for every
  /// case.
  ///
  ///     @Action enum Action: Equatable {
  ///       case increment
  ///       case set(Int)
  ///       case counter(Counter.Action)
  ///     }
  ///
  /// The number of a case is its position, and so is that of an associated value; values that are
  /// optional or have a default may be appended. An unknown case number is decoded as the case
  /// marked `@Fallback`; without one it is an error.
  ///
  /// An enumeration with the case `set(State.Setting)` is a `BindableAction`.
  @attached(
    extension,
    conformances: SynchronizableAction, SynchronizableScalar, CasePathable, BindableAction)
  @attached(
    member,
    names: named(isSame), named(encode), named(init), named(adopt), named(holdsCollections),
    named(schemaKind), named(AllCasePaths), named(allCasePaths), named(name), named(setting),
    named(_travels))
  public macro Action() = #externalMacro(module: "LockstepMacros", type: "ActionMacro")

  /// A field that never travels: each process has its own. A new copy of the state begins with the
  /// initial value, and a patch leaves the field alone.
  @attached(peer)
  public macro Ignored() = #externalMacro(module: "LockstepMacros", type: "MarkerMacro")

  /// A field that travels but is not persisted: a daemon that restarts begins with the initial
  /// value.
  @attached(peer)
  public macro Ephemeral() = #externalMacro(module: "LockstepMacros", type: "MarkerMacro")

  /// A field that an action may set: `case set(State.Setting)`, `store.send(.set(\.volume, 7))`.
  /// Its type is written out, unless a literal shows it.
  @attached(peer)
  public macro Settable() = #externalMacro(module: "LockstepMacros", type: "MarkerMacro")

  /// Checks that the type of a field can travel. Written by `@ObservableState`.
  @attached(peer, names: prefixed(_travels_))
  public macro _Travels() =
    #externalMacro(module: "LockstepMacros", type: "TravelCheckMacro")

  /// The case as which unknown cases of a later version are decoded.
  @attached(peer)
  public macro Fallback() = #externalMacro(module: "LockstepMacros", type: "MarkerMacro")
#endif
