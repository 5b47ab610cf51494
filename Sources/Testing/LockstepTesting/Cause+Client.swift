public import Lockstep

extension Cause {
  /// An action of a client of this session, for tests of features that ask for their `origin`. The
  /// client's connection and process have the number of the session too.
  public static func client(session: UInt64, label: String = "") -> Cause {
    Cause(
      .client(
        ClientOrigin(
          connection: session, pid: session, uid: 1000, gid: 1000, label: label, session: session)))
  }
}
