import Foundation
import SocketPaths
import Testing

/// Where daemons listen and clients look, under a root directory of the test's own.
struct StandardPlacesTests {
  /// A root directory, and this process's user.
  private final class Root {
    let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
    var user = geteuid()
    var environment: [String: String] = [:]

    init(_ directories: String...) throws {
      for directory in directories + ["tmp"] { try make(directory) }
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func make(_ directory: String, mode: Int = 0o700) throws {
      try FileManager.default.createDirectory(
        atPath: "\(path)/\(directory)", withIntermediateDirectories: true)
      try FileManager.default.setAttributes(
        [.posixPermissions: mode], ofItemAtPath: "\(path)/\(directory)")
    }

    func makeSocket(_ file: String) throws {
      let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(descriptor) }
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      let bytes = Array("\(path)/\(file)".utf8)
      try #require(bytes.count < MemoryLayout.size(ofValue: address.sun_path))
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
      let isBound = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
        }
      }
      try #require(isBound)
    }

    var places: StandardPlaces {
      StandardPlaces(user: user, root: path) { self.environment[$0] }
    }

    /// The paths without the root before them.
    var paths: [String] { places.paths.map { short($0) } }
    var forClient: String { short(places.forClient) }
    /// In the third place's directory.
    var own: String { "tmp/lockstep-\(user)" }

    func short(_ path: String) -> String { path.replacing(self.path + "/", with: "") }
  }

  private let machine = "run/lockstep/lockstep.sock"

  @Test func `a named socket is the only place`() throws {
    let root = try Root("run/lockstep", "x")
    root.environment = ["LOCKSTEP_SOCKET": "/a/b", "XDG_RUNTIME_DIR": root.path + "/x"]
    #expect(root.paths == ["/a/b"])
    root.environment["LOCKSTEP_SOCKET"] = ""
    #expect(root.paths.first == "x/lockstep.sock")
  }

  @Test func `a user's runtime directory comes first, if it is one and the user's own`() throws {
    let root = try Root("run/lockstep", "x")
    try Data().write(to: URL(filePath: root.path + "/file"))
    root.environment["XDG_RUNTIME_DIR"] = root.path + "/x"
    #expect(root.paths == ["x/lockstep.sock", machine, "\(root.own)/lockstep.sock"])
    for other in ["", "/nothing", "/file"] {
      root.environment["XDG_RUNTIME_DIR"] = other.isEmpty ? "" : root.path + other
      #expect(root.paths.first == machine, "\(other)")
    }
    // Somebody else's, as su leaves it.
    root.environment["XDG_RUNTIME_DIR"] = root.path + "/x"
    root.user += 1
    #expect(root.paths.allSatisfy { !$0.hasPrefix("x/") })
  }

  @Test func `without the variable, the directory that logind makes is looked at`() throws {
    let root = try Root("run/lockstep")
    root.user = 0
    try root.make("run/user/0")
    // A daemon of root is started by hand or by cron alike; logind's directory goes at a logout.
    #expect(root.paths.allSatisfy { !$0.hasPrefix("run/user") })
    root.user = 4321
    try root.make("run/user/4321")
    guard chown("\(root.path)/run/user/4321", 4321, 4321) == 0 else { return }
    #expect(root.paths.first == "run/user/4321/lockstep.sock")
    root.environment["XDG_RUNTIME_DIR"] = root.path + "/nothing"
    #expect(root.paths.first != "run/user/4321/lockstep.sock")
  }

  @Test func `a directory of one's own comes before one in which one may not serve`() throws {
    let root = try Root()
    let own = "\(root.own)/lockstep.sock"
    // Only root makes the machine's directory, if there is /run.
    #expect(root.paths == [own, machine])
    try root.make("run")
    #expect(root.paths == (root.user == 0 ? [machine, own] : [own, machine]))
    try root.make("run/lockstep")
    #expect(root.paths == [machine, own])
    try root.make("run/lockstep", mode: 0o500)
    // Root may write to it nevertheless.
    #expect(root.paths == (root.user == 0 ? [machine, own] : [own, machine]))
    try root.make("run/lockstep")
  }

  @Test func `a client takes the first place with a socket, else the daemon's`() throws {
    let root = try Root("run/lockstep", "x")
    root.environment["XDG_RUNTIME_DIR"] = root.path + "/x"
    #expect(root.forClient == "x/lockstep.sock")
    try root.make(root.own)
    try root.makeSocket("\(root.own)/lockstep.sock")
    #expect(root.forClient == "\(root.own)/lockstep.sock")
    try root.makeSocket(machine)
    #expect(root.forClient == machine)
    try Data().write(to: URL(filePath: root.path + "/x/lockstep.sock"))
    #expect(root.forClient == machine, "a file is no socket")
    try FileManager.default.removeItem(atPath: root.path + "/x/lockstep.sock")
    try root.makeSocket("x/lockstep.sock")
    #expect(root.forClient == "x/lockstep.sock")
  }

  @Test func `a directory that others could have made counts only if it is closed to them`() throws
  {
    let root = try Root("elsewhere")
    let own = "\(root.own)/lockstep.sock"
    func isRefused() throws -> Bool {
      // Without a socket that can be trusted, the machine's would be taken.
      try root.make("run/lockstep")
      try root.makeSocket(machine)
      defer { try? FileManager.default.removeItem(atPath: root.path + "/run") }
      #expect(throws: SocketPath.Unsafe.self) {
        try root.places.makeDirectory(of: "\(root.path)/\(own)")
      }
      return root.forClient == machine
    }
    for mode in [0o755, 0o770, 0o701] {
      try root.make(root.own, mode: mode)
      try? FileManager.default.removeItem(atPath: "\(root.path)/\(own)")
      try root.makeSocket(own)
      #expect(try isRefused(), "\(mode)")
    }
    try root.make(root.own)
    #expect(root.forClient == own)
    try FileManager.default.moveItem(
      atPath: "\(root.path)/\(root.own)", toPath: "\(root.path)/elsewhere/mine")
    try FileManager.default.createSymbolicLink(
      atPath: "\(root.path)/\(root.own)", withDestinationPath: "\(root.path)/elsewhere/mine")
    #expect(try isRefused(), "a link")
    try FileManager.default.removeItem(atPath: "\(root.path)/\(root.own)")
    // Somebody else's, as well made as it may be.
    root.user += 1
    try root.make(root.own)
    try root.makeSocket("\(root.own)/lockstep.sock")
    #expect(throws: SocketPath.Unsafe.self) {
      try root.places.makeDirectory(of: "\(root.path)/\(root.own)/lockstep.sock")
    }
  }

  @Test func `a daemon makes its directory, with the permissions that it needs`() throws {
    let root = try Root("run", "x")
    func mode(_ path: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: "\(root.path)/\(path)")[.posixPermissions]
        as? Int
    }
    try root.places.makeDirectory(of: "\(root.path)/\(root.own)/lockstep.sock")
    #expect(try mode(root.own) == 0o700)
    // Again is as well.
    try root.places.makeDirectory(of: "\(root.path)/\(root.own)/lockstep.sock")
    root.user = 0
    try root.places.makeDirectory(of: "\(root.path)/\(machine)")
    #expect(try mode("run/lockstep") == 0o755)
    try root.places.makeDirectory(of: "\(root.path)/x/y/lockstep.sock")
    #expect(!FileManager.default.fileExists(atPath: root.path + "/x/y"))
  }
}
