public import Lockstep

extension Cause {
  /// The cause of an action that a client of this session sent, for tests of features that read
  /// their `origin`. The client's connection and process have the same number as the session.
  public static func client(session: UInt64, label: String = "") -> Cause {
    Cause(
      .client(
        ClientOrigin(
          connection: session, pid: session, uid: 1000, gid: 1000, label: label, session: session)))
  }
}
