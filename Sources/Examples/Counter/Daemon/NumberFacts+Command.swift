import CounterFeature
import Dispatch
import Foundation

extension NumberFacts {
  /// The output of a program that is called with the number. A cancelled request ends the program.
  static func command(_ path: String) -> NumberFacts {
    NumberFacts { number in
      let process = Process()
      process.executableURL = URL(filePath: path)
      process.arguments = ["\(number)"]
      let output = Pipe()
      process.standardOutput = output
      try process.run()
      return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          // Reading blocks, which is not allowed in an effect.
          DispatchQueue.global().async {
            continuation.resume(with: Result { try fact(from: process, output) })
          }
        }
      } onCancel: {
        if process.isRunning { process.terminate() }
      }
    }
  }

  private static func fact(from process: Process, _ output: Pipe) throws -> String {
    let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw CommandFailure(status: process.terminationStatus)
    }
    return String(decoding: bytes, as: UTF8.self)
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }
}

/// A command that ended with a status other than 0.
struct CommandFailure: Error {
  let status: Int32
}
