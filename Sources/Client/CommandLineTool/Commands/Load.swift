import ArgumentParser
import Documents
import Glibc
import Values

struct Load: SendingCommand {
  static let configuration = CommandConfiguration(
    commandName: "load",
    abstract: "Replace the whole document by that of a file.",
    discussion: """
      Other clients see the old document, then the new one, nothing between. A document that is \
      larger than one message may be (see 'lockstep limits', frameBytes) is sent in parts to a \
      member '/lockstep-load-…' of the old one, and then takes its place in one step; for that \
      the old one must be an object.

      EXAMPLES:
        lockstep load backup.json
        lockstep export --format cbor | lockstep --socket other.sock load --format cbor -
      """)

  @Argument(
    help: "A file; '-' is standard input.", completion: .file(), transform: ArgumentOrder.unmarked)
  var file: String

  @Option(help: "json or cbor; by default what the file's name ends with, else json.")
  var format: DocumentFormat?

  @Flag(help: #"Read {"$bytes": …} and {"$double": …} in JSON as the values they stand for."#)
  var tagged = false

  @OptionGroup var safety: Safety
  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    try await Client.with(options, for: self) { client in
      let file = File(file)
      let progress = ProgressBar("reading", options)
      let bytes = try file.read()
      progress.begin("parsing")
      let document =
        switch format ?? DocumentFormat(named: file.path) {
        case .json: try file.parsingJSON(bytes, tagged: tagged)
        case .cbor: try file.parsingCBOR(bytes)
        }
      let size = EncodedSize.of(document)
      progress.begin("sending")
      let acknowledgement =
        if size + 1024 <= client.frameLimit {
          try await client.send(.set(.root, document), safety.mark)
        } else {
          try await StagedLoad(client: client).run(document, safety.mark, showing: progress)
        }
      progress.end()
      try await client.show(acknowledgement, safety, options)
    }
  }
}
