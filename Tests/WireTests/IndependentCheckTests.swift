import Foundation
import Testing

/// A Python that has cbor2 and cddl-verifier; `Scripts/test` makes one.
private let python = ProcessInfo.processInfo.environment["LOCKSTEP_PYTHON"]

@Suite(.enabled(if: python != nil, "LOCKSTEP_PYTHON names no Python: see Scripts/test"))
struct IndependentCheckTests {
  @Test func `an independent decoder, digest and grammar agree with every vector`() throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: try #require(python))
    process.arguments = [
      "-B", repository.appendingPathComponent("Tests/ProtocolTests/check_vectors.py").path,
    ]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let data = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "\(String(decoding: data, as: UTF8.self))")
  }
}
