import ArgumentParser
import EventLoop
import LockstepClient
import Values

struct ShowDigest: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "digest",
    abstract: "Compare the digest of a path with the daemon's.",
    discussion: """
      Makes a mirror of the path, and compares its digest with what the daemon computes. Status \
      10 if they differ. Digests can be compared within one epoch of the daemon; see 'lockstep \
      status'. The path goes through objects, not into arrays. Of a state with types of its own \
      the daemon's digest is shown, and compared with nothing: here it is held by names.

      EXAMPLES:
        lockstep digest /lamps
      """)

  @Argument(help: PathArgument.help, completion: Completion.path, transform: PathArgument.init(_:))
  var path = PathArgument(.root)

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let path = try client.resolve(path)
      let mirror = try await client.mirror(of: path.path)
      if !client.isDocument { return try await showDaemons(mirror) }
      guard mirror.state != nil else {
        throw try await absence(of: path, client)
      }
      let (revision, digest) = try await mirror.daemonDigest()
      // The session has compared both at this revision, and would have replaced a differing mirror.
      let isEqual = mirror.connection.lastDivergence == nil
      let output = Output(options)
      if output.isPretty {
        let remark = isEqual ? "daemon and mirror are equal" : "the mirror differed"
        try output.lines("\(digest)  \(output.faint("revision \(revision), \(remark)"))")
      } else {
        let own: Value = isEqual ? .text(digest.description) : .null
        try output.line([
          "daemon": .text(digest.description), "equal": .bool(isEqual), "mirror": own,
          "revision": Value(revision),
        ])
      }
      if let divergence = mirror.connection.lastDivergence {
        throw Failure(
          .differs,
          "the mirror differed from the daemon's state: \(divergence). That is a defect: please "
            + "report it.")
      }
    }
  }

  /// The reason that a path has no digest: there is no value, or the path goes into an array.
  private func absence(of path: PathArgument, _ client: Client) async throws -> Failure {
    let state = path.rest.keys.isEmpty ? nil : try await client.mirror(of: path.scope).state
    guard state?.value(at: path.rest) != nil else {
      return Failure(.absent, await client.absence(of: path, in: state), at: path.path)
    }
    return Failure(
      .absent,
      "'\(path.path.pointer)' is inside an array, and a digest is of what objects lead to: compare "
        + "'\(path.scope.pointer)'.", at: path.path)
  }

  private func showDaemons(_ mirror: Subscription<Value>) async throws {
    let (revision, digest) = try await mirror.daemonDigest()
    let output = Output(options)
    if output.isPretty {
      return try output.lines("\(digest)  \(output.faint("revision \(revision), the daemon's"))")
    }
    try output.line([
      "daemon": .text(digest.description), "equal": .null, "mirror": .null,
      "revision": Value(revision),
    ])
  }
}
