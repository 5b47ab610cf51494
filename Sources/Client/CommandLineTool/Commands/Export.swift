import ArgumentParser
import CBOR
import ClientCore
import Documents
import EventLoop
import Glibc
import LockstepClient
import Records
import Values

struct Export: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write the whole document to a file, or to standard output.",
    discussion: """
      One consistent state, its keys sorted: equal documents make equal files. A file is replaced \
      only when all has been written. CBOR (RFC 8949, deterministic) keeps bytes as they are; in \
      JSON they are {"$bytes": base64}, see 'lockstep load --tagged'. A state with types of its \
      own is written by the names of its fields.

      EXAMPLES:
        lockstep export backup.json
      """)

  @Argument(
    help: "A file; '-' or none is standard output.", completion: .file(),
    transform: ArgumentOrder.unmarked)
  var file: String = "-"

  @Option(help: "json or cbor; by default what the file's name ends with, else json.")
  var format: DocumentFormat?

  @Flag(help: "Lay JSON out, with a line for each entry.")
  var pretty = false

  @OptionGroup(title: "Global Options") var options: GlobalOptions

  func run() async throws {
    let file = File(file)
    let format = format ?? DocumentFormat(named: file.path)
    let output = Output(options)
    if format == .cbor && file.isStandard && output.isTerminal {
      throw Failure(.usage, "CBOR is no text for a terminal: name a file, or redirect.")
    }
    try await Client.with(options, for: self) { client in
      let progress = ProgressBar("receiving", options)
      let mirror = client.open(.root)
      progress.follow { mirror.counters.bytes }
      try await mirror.reached(revision: 0)
      guard let document = mirror.state else {
        throw Failure(.absent, "the daemon has no document.")
      }
      progress.begin("writing")
      let bytes = bytes(document, format, lays: pretty || file.isStandard && output.isPretty)
      progress.end()
      try file.write(bytes)
    }
  }

  private func bytes(_ document: Value, _ format: DocumentFormat, lays: Bool) -> [UInt8] {
    switch format {
    case .cbor: return DeterministicCBOR.bytes(document)
    case .json:
      var bytes: [UInt8] = []
      JSON.write(document, into: &bytes, pretty: lays, sortedKeys: true)
      bytes.append(0x0a)
      return bytes
    }
  }
}

/// The format of a document in a file.
enum DocumentFormat: String, ExpressibleByArgument, CaseIterable {
  case json, cbor

  /// The format that the name of a file implies.
  init(named name: String) { self = name.hasSuffix(".cbor") ? .cbor : .json }
}
