// The code that the macros write names types of these modules, and whoever writes a state does too.
@_exported public import CBOR
@_exported public import Values

#if Macros
  /// Makes a struct a state: its fields travel one by one, so that a change costs what it touched,
  /// and whoever watches one field hears of no other.
  ///
  ///     @ObservableState struct State: Equatable {
  ///       var count = 0
  ///       var fact: String?
  ///       var todos: SyncMap<Int, Todo> = [:]
  ///     }
  ///
  /// Every stored property is a field; its number is its place among those that travel. Not
  /// fields are computed and static properties, and `let` with an initial value. A field that
  /// does not come, from a peer that has none of its name, takes its initial value. Its type is
  /// any `Synchronizable` one; the elements of collections are not optional. A change to a `let`
  /// makes the struct anew around it, without running an initializer.
  ///
  /// Two limits of the compiler: a type alias inside the struct that names the type of a field
  /// (`typealias ID = Int`) makes the struct unfit for other states; and an initial value that
  /// refers to another macro's type in a file further on may need its type written out
  /// (`var tab: Tab = Tab()`).
  ///
  /// Refused are observers, which would run again in every mirror, lazy and weak properties,
  /// property wrappers other than `@Pulse`, and types that cannot be decoded.
  ///
  /// An enumeration under `@ObservableState` is a part of a state: it travels whole, as an
  /// `@Action` does.
  @attached(
    extension,
    conformances: ObservableState, SynchronizableScalar, CasePathable,
    names: named(isSame), named(encode), named(init), named(encodeDifference), named(apply),
    named(digest), named(adopt), named(holdsCollections), named(schemaKind), named(visit),
    named(fields), named(initialValue), named(resetEphemeral))
  @attached(
    member,
    names: named(isSame), named(encode), named(init), named(adopt), named(holdsCollections),
    named(schemaKind), named(AllCasePaths), named(allCasePaths))
  public macro ObservableState() =
    #externalMacro(module: "LockstepMacros", type: "ObservableStateMacro")

  /// Makes an enumeration something that may happen: it can be sent, has a name for people, and a
  /// path for every case.
  ///
  ///     @Action enum Action: Equatable {
  ///       case increment
  ///       case set(Int)
  ///       case counter(Counter.Action)
  ///     }
  ///
  /// The number of a case is its place, and so is that of a value that it carries; values that are
  /// optional or have a default may be added behind the others. A number that nobody here knows
  /// is decoded as the case marked `@Fallback`, else it is an error.
  @attached(extension, conformances: SynchronizableAction, SynchronizableScalar, CasePathable)
  @attached(
    member,
    names: named(isSame), named(encode), named(init), named(adopt), named(holdsCollections),
    named(schemaKind), named(AllCasePaths), named(allCasePaths), named(name))
  public macro Action() = #externalMacro(module: "LockstepMacros", type: "ActionMacro")

  /// A field that never travels: each process has its own. A new copy of the state begins with the
  /// initial value, and a patch leaves the field alone.
  @attached(peer)
  public macro Ignored() = #externalMacro(module: "LockstepMacros", type: "MarkerMacro")

  /// A field that travels but is kept out of files: a daemon that restarts begins with the initial
  /// value.
  @attached(peer)
  public macro Ephemeral() = #externalMacro(module: "LockstepMacros", type: "MarkerMacro")

  /// The case that stands for cases of a later version.
  @attached(peer)
  public macro Fallback() = #externalMacro(module: "LockstepMacros", type: "MarkerMacro")
#endif
