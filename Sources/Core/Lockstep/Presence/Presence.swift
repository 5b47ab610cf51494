public import Values

/// Tracks presence: an entry for each client that enters, removed when the client is gone. For
/// cursors, typing indicators, "who has this open", or which worker has claimed which task.
///
///     struct Room: Reducer {
///       @ObservableState struct Cursor: Equatable {
///         var x = 0
///         var y = 0
///       }
///       @ObservableState struct State: Equatable {
///         var title = ""
///         @Ephemeral var present = Present<Cursor>()
///       }
///       @Action enum Action {
///         case rename(String)
///         case presence(Presence<Cursor>.Action)
///       }
///
///       var body: some Reducer<State, Action> {
///         Scope(state: \.present, action: \.presence) { Presence<Cursor>() }
///         Reduce { state, action in
///           if case .rename(let title) = action { state.title = title }
///           return .none
///         }
///       }
///     }
///
/// and in a client
///
///     try await mirror.send(.presence(.enter(Room.Cursor())))
///     try await mirror.send(.presence(.update(Room.Cursor(x: 3, y: 4))))
///     for (session, _, cursor) in mirror.present { draw(cursor, session) }
///     try await mirror.send(.presence(.leave))
///
/// An entry belongs to its sender's session: an action cannot name another one. The daemon knows
/// which session sent an action, and when the session ends. So an entry is removed
///
/// - at once, when its client's process ends, for whatever reason, or says goodbye;
/// - after the daemon's grace period, when the client has lost its connection and does not
///   reconnect. A client that reconnects in time keeps its entry, and no other client sees that it
///   was away.
///
/// A session can have several entries, under keys of its own: `.enter(cursor, key: "left")`.
///
/// The state is `@Ephemeral`, because presence does not outlive a restart of the daemon. A client
/// whose `.update` is rejected with the code `badPath`, or that finds its entry missing, enters
/// again.
public struct Presence<Entry: Synchronizable>: Reducer {
  public typealias State = Present<Entry>
  public typealias Body = Never

  /// The longest key, in bytes of UTF-8: a key is a name, not storage.
  static var keyLimit: Int { 128 }

  private let entriesPerSession: Int
  private let admit: @Sendable (inout Entry, ClientOrigin) throws(Rejection) -> Void

  /// - Parameters:
  ///   - entriesPerSession: How many entries one session may have.
  ///   - admit: Called with an entry before it is entered or updated, and with its sender:
  ///     completes the entry with the client's credentials from the kernel, for example, or throws
  ///     to refuse it.
  public init(
    entriesPerSession: Int = 16,
    admit: @escaping @Sendable (inout Entry, ClientOrigin) throws(Rejection) -> Void = { _, _ in }
  ) {
    self.entriesPerSession = entriesPerSession
    self.admit = admit
  }

  public func reduce(
    into state: inout Present<Entry>, action: Action
  ) throws(Rejection) -> Effect<Action> {
    switch action {
    case .enter(var entry, let key):
      let client = try sender()
      try makeRoom(for: key, of: client.session, in: state)
      try admit(&entry, client)
      state[client.session, key] = entry
    case .update(var entry, let key):
      let client = try sender()
      guard state[client.session, key] != nil else {
        throw Rejection(.badPath, "there is no entry to update: enter first")
      }
      try admit(&entry, client)
      state[client.session, key] = entry
    case .leave(let key):
      state[try sender().session, key] = nil
    case .session(let news):
      guard DependencyValues.current.origin == .owner else {
        throw Rejection(.denied, "only the daemon says what became of a session")
      }
      if case .ended(let session, _) = news { state.remove(session) }
    }
    return .none
  }

  /// Only the end of a session that has entries needs an action.
  public var lifecycle: Lifecycle<Present<Entry>, Action> {
    .onSession { event, state in
      switch event {
      case .ended(let session, _): state.contains(session) ? [.session(event)] : []
      case .lost, .returned: []
      }
    }
  }

  /// The client whose session sent the action.
  private func sender() throws(Rejection) -> ClientOrigin {
    let origin = DependencyValues.current.origin
    guard case .client(let client) = origin else {
      let sender = origin.map { "\($0)" } ?? "nobody known"
      throw Rejection(.refused, "only a client can be present, and this came from \(sender)")
    }
    guard State.place(of: client.session) != nil else {
      throw Rejection(.refused, "\(client) has no session, so nobody could tell when it is gone")
    }
    return client
  }

  private func makeRoom(
    for key: String, of session: UInt64, in state: Present<Entry>
  ) throws(Rejection) {
    guard key.utf8.count <= Self.keyLimit else {
      throw Rejection(
        .limit, "a key of \(key.utf8.count) bytes, and an entry's has at most \(Self.keyLimit)")
    }
    guard state[session, key] == nil, state.entryCount(of: session) >= entriesPerSession else {
      return
    }
    throw Rejection(.limit, "a session has at most \(entriesPerSession) entries here")
  }
}
