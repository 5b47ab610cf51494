import ArgumentParser
import Documents
import Lockstep
import LockstepServer
import Logging

@main
struct StockDaemon: LockstepDaemon {
  static var configuration: DaemonConfiguration {
    DaemonConfiguration(
      name: "lockstepd",
      abstract: "Owns a document that every process on the machine can mirror.",
      version: "0.1.0")
  }

  @Option(
    help: ArgumentHelp(
      "Begin with the JSON document of this file.",
      discussion: "A state that was kept goes before.", valueName: "file"),
    completion: .file())
  var load: String?

  var feature: DocumentFeature { DocumentFeature() }

  var initialStateFile: String? { load }

  var initialState: Document {
    get throws {
      guard let load else { return Document() }
      return try DocumentFile.document(load)
    }
  }

  func serveStub(
    _ state: Document, _ options: DaemonOptions, _ dependencies: DependencyValues, _ logger: Logger
  ) throws {
    try serve(state, DocumentFeature(isStub: true), options, dependencies, logger)
  }
}
