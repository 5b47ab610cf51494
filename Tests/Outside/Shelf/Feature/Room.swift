import Lockstep

/// A room with a lamp.
public struct Room: Reducer {
  @ObservableState public struct State: Equatable {
    public var lamp = Lamp.State()

    public init() {}
  }

  @Action public enum Action: Equatable, Sendable { case lamp(Lamp.Action) }

  public init() {}

  public var body: some Reducer<State, Action> {
    Scope(state: \.lamp, action: \.lamp) { Lamp() }
  }
}

/// A lamp that counts how often its daemon has started.
public struct Lamp: Reducer {
  @ObservableState public struct State: Equatable {
    public var isOn = false
    public var starts = 0

    public init() {}
  }

  @Action public enum Action: Equatable, Sendable { case toggle, began }

  public init() {}

  public var lifecycle: Lifecycle<State, Action> { .onStart { _ in .began } }

  public func reduce(into state: inout State, action: Action) -> Effect<Action> {
    switch action {
    case .toggle: state.isOn.toggle()
    case .began: state.starts += 1
    }
    return .none
  }
}

/// What is being written on a sleeve.
public struct Note: Reducer {
  @ObservableState public struct State: Equatable {
    public var text = ""
    /// How often its daemon has started with it.
    public var starts = 0

    public init() {}
  }

  @Action public enum Action: Equatable, Sendable { case write(String), began }

  public init() {}

  public var lifecycle: Lifecycle<State, Action> { .onStart { _ in .began } }

  public func reduce(into state: inout State, action: Action) -> Effect<Action> {
    switch action {
    case .write(let text): state.text += text
    case .began: state.starts += 1
    }
    return .none
  }
}

/// The list, or one record.
public struct Screen: Reducer {
  @ObservableState public enum State: Equatable {
    case list
    case sleeve(Note.State)
    @Fallback case unknown
  }

  @Action public enum Action: Equatable, Sendable {
    case open
    case close
    case sleeve(Note.Action)
  }

  public init() {}

  public var body: some Reducer<State, Action> {
    Reduce { state, action in
      switch action {
      case .open: state = .sleeve(Note.State())
      case .close: state = .list
      case .sleeve: break
      }
      return .none
    }
    .ifCaseLet(\.sleeve, action: \.sleeve) { Note() }
  }
}
