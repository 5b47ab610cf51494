import ArgumentParser
import EventLoop
import Values
import Wire

struct List: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls",
    abstract: "What is under a path: names, kinds and sizes, without the values.",
    discussion: """
      The daemon makes the list, and sends no value for it. On a terminal a table; else one object \
      a line:
        path     of the part, a JSON Pointer
        kind     object, array, string, number, boolean, null or bytes; of a state with types of \
      its own also struct, map, case or path
        count    of its members or elements; null where there are none to count
        bytes    that its value takes as CBOR (BYTES)
        changed  the revision of its last change (CHANGED); null if that is longer ago than the \
      daemon remembers

      Parts are in the order of their names, numbers first. It ends after --limit rows, and says so \
      on standard error; --after goes on behind the last of them, --all lists every part, in as many \
      requests as that takes. What has no parts is listed itself.

      EXAMPLES:
        lockstep ls
        lockstep ls /lamps --depth 2
        lockstep ls /lamps --at 40
        lockstep --json ls /sensors --all | jq -r .path

        $ lockstep set /lamps '{"hall": {"on": true}, "porch": null}'
        revision 1
        $ lockstep ls /lamps --depth 2
        KIND     COUNT  BYTES  CHANGED  NAME
        object       1      5        1  hall
        boolean      -      1        1    on
        null         -      1        1  porch
      """)

  @Argument(help: PathArgument.help, completion: Completion.path, transform: PathArgument.init(_:))
  var path = PathArgument(.root)

  @Option(
    help: ArgumentHelp("How many levels below the path: 1 by default.", valueName: "number"),
    transform: NumberArgument.atLeast(1))
  var depth: Int = 1

  @Option(
    help: ArgumentHelp("The most rows: 1000 by default.", valueName: "number"),
    transform: NumberArgument.atLeast(1))
  var limit: Int = 1000

  @Option(
    help: ArgumentHelp("Begin behind the part with this path.", valueName: "path"),
    completion: Completion.path, transform: PathArgument.init(_:))
  var after: PathArgument?

  @Flag(help: "All parts, however many.")
  var all = false

  @Option(
    help: ArgumentHelp(
      "What was there at this revision: see 'lockstep history --help'.", valueName: "revision"),
    transform: NumberArgument.atLeast(0))
  var at: UInt64?

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func validate() throws {
    guard let after else { return }
    if !path.path.leads(to: after.path) || path.path == after.path {
      throw ValidationError(
        "--after names '\(after.path.pointer)', which is not under '\(path.path.pointer)'.")
    }
  }

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let path = try client.resolve(path)
      do {
        try await list(path.path, client, Output(options))
      } catch let failure as Failure where failure.status == .absent && !path.rest.keys.isEmpty {
        throw Failure(
          .absent,
          "there is nothing at '\(path.path.pointer)', or it is in an array, whose elements are not "
            + "listed. See 'lockstep get'.", at: path.path)
      }
    }
  }

  private func list(_ path: Path, _ client: Client, _ output: Output) async throws {
    var last = after?.path.keys.dropFirst(path.keys.count).pointer ?? ""
    var left = all ? Int.max : limit
    while true {
      let page = try ListingPage(
        await client.report(
          .parts,
          [path.pointer, "\(depth)", "\(min(left, Self.pageRows))", last]
            + (at.map { ["\($0)"] } ?? [])))
      let isWholeAlone = page.parts.isEmpty && !page.hasMore && last.isEmpty
      try show(isWholeAlone ? [page.whole] : page.parts, below: isWholeAlone ? nil : path, output)
      left -= page.parts.count
      guard page.hasMore, let end = page.parts.last?.path else { return }
      if left <= 0 {
        return StandardError.note(
          "there is more: go on with --after '\(end.pointer)', or see --all.")
      }
      last = end.keys.dropFirst(path.keys.count).pointer
    }
  }

  /// The most rows that the daemon lists at a time.
  private static var pageRows: Int { 10_000 }

  private func show(
    _ rows: [ListingPage.Row], below path: Path?, _ output: Output
  ) throws(Failure) {
    guard output.isPretty else {
      for row in rows { try output.line(row.value) }
      return
    }
    var table = Table([
      .init(heading: "KIND"), .init(heading: "COUNT", isNumber: true),
      .init(heading: "BYTES", isNumber: true), .init(heading: "CHANGED", isNumber: true),
      .init(heading: "NAME", mayBeCut: true),
    ])
    for row in rows {
      let numbers = ["count", "bytes", "changed"].map { name in
        row.value.child(.text(name)) == .null ? "-" : row.value.cell(name)
      }
      table.add([row.value.cell("kind")] + numbers + [row.name(below: path)])
    }
    try output.lines(table.text(width: output.width, heading: output.faint))
  }
}

/// One answer to a listing.
private struct ListingPage {
  struct Row {
    let value: Value
    let path: Path

    init(_ value: Value?) throws(Failure) {
      guard let value, case .text(let pointer)? = value.child("path"),
        let path = Path(pointer: pointer)
      else { throw Failure(.goodbye, "the daemon's list of parts is none.") }
      self.value = value
      self.path = path
    }

    /// The last key, indented by the levels between; the whole path if it is listed by itself.
    func name(below whole: Path?) -> String {
      guard let whole, let key = path.keys.last else {
        return path.keys.isEmpty ? "''" : path.pointer
      }
      let indent = String(repeating: "  ", count: max(0, path.keys.count - whole.keys.count - 1))
      return indent + (key.description.isEmpty ? "''" : key.description)
    }
  }

  let whole: Row
  let parts: [Row]
  let hasMore: Bool

  init(_ report: Value) throws(Failure) {
    whole = try Row(report.child("whole"))
    guard case .array(let rows)? = report.child("parts") else {
      throw Failure(.goodbye, "the daemon's list of parts is none.")
    }
    var parts: [Row] = []
    for row in rows { parts.append(try Row(row)) }
    self.parts = parts
    hasMore = report.child("hasMore") == true
  }
}

extension ArraySlice<PathKey> {
  fileprivate var pointer: String { Path(Array(self)).pointer }
}
