public import Lockstep

@ObservableState
struct Todo: Equatable {
  var title = ""
  var isDone = false
  var tags: SyncArray<String> = []
  var note: String?
}

/// The state in the README, as a feature has it.
enum Todos {
  @ObservableState
  struct State: Equatable {
    var count = 0
    var fact: String?
    var todos: SyncMap<Int, Todo> = [:]
  }

  @Action
  enum Action: Equatable {
    case increment
    case set(Int)
    case rename(id: Int, String, note: String? = nil)
    case todo(Int, TodoAction)
    case child(TodoAction)
    case tabs([Tab], default: Bool = true)
    @Fallback case unknown
  }
}

@Action
enum TodoAction: Equatable {
  case toggle
  case tag(String)
}

/// A type with raw values needs no macro.
enum Tab: String, SynchronizableScalar, SyncKey { case home, search }

/// A case with each kind of payload, collections among them.
@ObservableState(frozen: true)
enum Screen: Equatable {
  case none
  case list(SyncMap<String, Int>)
  case detail(Todo, Tab?)
  indirect case stack(Screen, over: Screen)
}

/// An element of an ordered collection.
@ObservableState
struct Card: Equatable, Identifiable {
  let id: Int
  var title = ""
  var tags: SyncArray<String> = []
}

/// One field of every kind.
@ObservableState
struct Everything: Equatable {
  var number = 1
  var maybe: Int?
  var nested = Todos.State()
  var other = Todos.State()
  var screen = Screen.none
  var list: [Int] = [1, 2, 3]
  var bytes: [UInt8] = []
  var todos: [Todo] = []
  var byTab: [Tab: Todo] = [:]
  var tags: Set<String> = []
  var array: SyncArray<Todo> = []
  var deep: SyncMap<String, SyncMap<Int, Todo>> = [:]
  private var hidden: Double = 0
  @Pulse var alert: String?
  @Ephemeral var progress = 0.5
  @Ignored var cache: [String: Int] = [:]
  var cards: SyncIdentifiedArray<Card> = []
  let version = 3
  var double: Int { number * 2 }
  static let shared = 7

  mutating func hide(_ value: Double) { hidden = value }
}

/// No field has a default, and one is constant.
@ObservableState
struct Account: Equatable {
  let id: Int
  var name: String
  var nick: String?
  let badges: SyncArray<String>
  @Ignored var visits = 0
  let motto: Optional<String>
}

@ObservableState
struct Page<Item: Synchronizable & Equatable, Key: SyncKey & Synchronizable>: Equatable {
  var items: [Item] = []
  var selected: Key?
  var byKey: SyncMap<Key, Item> = [:]
}

@ObservableState(frozen: true)
enum Loadable<Value: Synchronizable & Equatable>: Equatable {
  case idle
  case loaded(Value)
}

@ObservableState
struct Empty: Equatable {}

@ObservableState
public struct Published: Equatable {
  public var title = "a"
  @Ephemeral public var draft: String?
  var inner = Inner()

  public init(title: String) { self.title = title }

  @ObservableState
  public struct Inner: Equatable {
    public var value = 1
    @Ephemeral var isOpen = false
  }

  @Action
  public enum Action {
    case open
    case loaded(Result<Int, Failure>)
  }

  @ObservableState(frozen: true)
  public enum Failure: Error { case offline, timeout }
}

/// A tree: a type with an array of itself.
@ObservableState
struct Branch: Equatable {
  var name = ""
  var children: [Branch] = []
}

/// Reserved words as names.
@ObservableState
struct Words: Equatable {
  var `default` = 0
  var `class`: String?
  var seed = 1
  var decoder = 2
  var digest = 3
  var a, b: Int
}

@Action
enum WordAction {
  case `default`
  case `switch`(`in`: Int)
}

@ObservableState
struct Thirty: Equatable {
  var f0 = 0
  var f1 = 0
  var f2 = 0
  var f3 = 0
  var f4 = 0
  var f5 = 0
  var f6 = 0
  var f7 = 0
  var f8 = 0
  var f9 = 0
  var f10 = 0
  var f11 = 0
  var f12 = 0
  var f13 = 0
  var f14 = 0
  var f15 = 0
  var f16 = 0
  var f17 = 0
  var f18 = 0
  var f19 = 0
  var f20 = 0
  var f21 = 0
  var f22 = 0
  var f23 = 0
  var f24: String?
  var f25 = "x"
  var f26 = 0.5
  var f27 = false
  var f28: [Int] = []
  var f29 = 0
}
