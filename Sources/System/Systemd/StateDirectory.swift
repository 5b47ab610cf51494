/// The directory of a service's persistent data.
public enum StateDirectory {
  /// The default directory; nil if the environment names none.
  ///
  /// The first path of `$STATE_DIRECTORY`, which a manager sets to the `StateDirectory=` of a unit,
  /// as paths with colons between them; else `lockstep` in `$XDG_STATE_HOME`. A path that is not
  /// absolute counts as not set, as the XDG Base Directory Specification says. The specification's
  /// default in the user's home is not used: a user that starts a daemon by hand, twice perhaps,
  /// has not asked for persistence. The directory may not exist yet.
  public static func standard(_ environment: Environment = .process) -> String? {
    if let own = environment["STATE_DIRECTORY"],
      let first = own.split(separator: ":", omittingEmptySubsequences: false).first,
      let path = absolute(String(first))
    {
      return path
    }
    return absolute(environment["XDG_STATE_HOME"]).map { join($0, "lockstep") }
  }

  private static func absolute(_ path: String?) -> String? {
    guard let path, path.utf8.first == UInt8(ascii: "/") else { return nil }
    return path
  }

  private static func join(_ directory: String, _ name: String) -> String {
    directory.utf8.last == UInt8(ascii: "/") ? directory + name : directory + "/" + name
  }
}
