import Systemd
import Testing

@Suite struct StateDirectoryTests {
  @Test(
    arguments: [
      (["STATE_DIRECTORY": "/var/lib/lockstep", "HOME": "/h"], "/var/lib/lockstep"),
      (["STATE_DIRECTORY": "/var/lib/a:/var/lib/b"], "/var/lib/a"),
      (["STATE_DIRECTORY": ":/var/lib/b", "HOME": "/h"], nil),
      (["STATE_DIRECTORY": "var/lib", "XDG_STATE_HOME": "/x"], "/x/lockstep"),
      (["XDG_STATE_HOME": "/x/", "HOME": "/h"], "/x/lockstep"),
      (["XDG_STATE_HOME": "x", "HOME": "/h"], nil),
      (["XDG_STATE_HOME": "", "HOME": "/"], nil),
      (["HOME": "h"], nil), (["HOME": ""], nil), ([:], nil),
    ] as [([String: String], String?)])
  func `the first directory of the environment is used`(
    variables: [String: String], directory: String?
  ) {
    #expect(StateDirectory.standard(Environment(variables)) == directory)
  }
}
