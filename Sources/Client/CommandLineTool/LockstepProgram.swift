public import ArgumentParser
import Documents
import EventLoop
import Glibc

/// The program `lockstep`.
public enum LockstepProgram {
  /// Run the command that the arguments name, and turn its result into an exit status.
  ///
  /// The first calls are not part of a task, because the runtime opens descriptors for its first
  /// task.
  public static func main() -> Never {
    StandardStreams.openClosed()
    Signals.ignoreBrokenPipe()
    if CommandLine.arguments.dropFirst().first == "---completion" { complete() }
    Task.detached { await run() }
    while true { pause() }
  }

  /// Answer a shell that completes an argument: on this thread, which may wait for it.
  private static func complete() -> Never {
    do {
      _ = try LockstepCommand.parseAsRoot(Array(CommandLine.arguments.dropFirst()))
      exit(ExitStatus.usage.rawValue)
    } catch {
      end(by: error)
    }
  }

  private static func run() async -> Never {
    let given = Array(CommandLine.arguments.dropFirst())
    StandardError.isJSON = given.prefix { $0 != "--" }.contains("--json")
    if given.isEmpty {
      StandardError.write(LockstepCommand.helpMessage() + "\n")
      exit(ExitStatus.usage.rawValue)
    }
    do {
      try checkEncoding()
      let arguments = ArgumentOrder.arranged(given)
      try CommandNames.check(arguments)
      if let script = try CompletionScript.requested(by: arguments) {
        try StandardOutput.write(Array((script + "\n").utf8))
        exit(ExitStatus.done.rawValue)
      }
      var command = try LockstepCommand.parseAsRoot(arguments)
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
      exit(ExitStatus.done.rawValue)
    } catch {
      end(by: error)
    }
  }

  /// Refuse arguments that are not UTF-8, which would be stored as something else.
  private static func checkEncoding() throws {
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let argument = CommandLine.unsafeArgv[index] else { continue }
      if String(validatingCString: argument) == nil {
        throw Failure(.usage, "the argument '\(String(cString: argument).shortened)' is not UTF-8.")
      }
    }
  }

  private static func end(by error: any Error) -> Never {
    if let failure = Failure(error) { end(failure) }
    if LockstepCommand.exitCode(for: error) == .success { endWithHelp(error) }
    if StandardError.isJSON {
      let message = ArgumentOrder.unmarkedAll(LockstepCommand.message(for: error))
      end(Failure(.usage, message.withoutFarGuess.endingInDot))
    }
    // The message quotes arguments, which may hold anything.
    let lines = text(of: error).withoutFarGuess
      .split(separator: "\n", omittingEmptySubsequences: false)
    StandardError.write(lines.map { $0.escapingControls + "\n" }.joined())
    exit(ExitStatus.usage.rawValue)
  }

  /// End another program of ours by an error.
  public static func end(_ command: (some ParsableCommand).Type, by error: any Error) -> Never {
    if let failure = Failure(error) { end(failure) }
    let isDone = command.exitCode(for: error) == .success
    let text = command.fullMessage(for: error) + "\n"
    if isDone, (try? StandardOutput.write(Array(text.utf8))) != nil { exit(0) }
    StandardError.write(text)
    exit(ExitStatus.usage.rawValue)
  }

  private static func end(_ failure: Failure) -> Never {
    StandardError.say(failure)
    Interruption.endBySignal()
    exit(failure.status.rawValue)
  }

  /// End with the help, the version, or the description of the tool that the parser was asked for.
  private static func endWithHelp(_ error: any Error) -> Never {
    let text = HelpText.arranged(text(of: error))
    do {
      if !text.isEmpty { try StandardOutput.write(Array((text + "\n").utf8)) }
    } catch {
      end(error)
    }
    exit(ExitStatus.done.rawValue)
  }

  private static func text(of error: any Error) -> String {
    ArgumentOrder.unmarkedAll(LockstepCommand.fullMessage(for: error))
      .replacing(GlobalOptions.usage, with: "[<global options>]")
  }
}
