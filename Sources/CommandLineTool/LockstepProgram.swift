import ArgumentParser
import Documents
import EventLoop
import Glibc

/// The program `lockstep`.
public enum LockstepProgram {
  /// Run the command that the arguments name, and turn whatever ends it into an exit status.
  public static func main() async {
    Signals.ignoreBrokenPipe()
    do {
      try checkEncoding()
      let arguments = ArgumentOrder.arranged(Array(CommandLine.arguments.dropFirst()))
      try checkCommand(arguments.first)
      var command = try LockstepCommand.parseAsRoot(arguments)
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
      exit(ExitStatus.done.rawValue)
    } catch let failure as Failure {
      end(failure)
    } catch {
      if let failure = Failure(error) { end(failure) }
      endParsing(error)
    }
  }

  /// Refuse what would be stored as something else.
  private static func checkEncoding() throws {
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let argument = CommandLine.unsafeArgv[index] else { continue }
      if String(validatingCString: argument) == nil {
        throw Failure(.usage, "the argument '\(String(cString: argument).shortened)' is not UTF-8.")
      }
    }
  }

  private static func checkCommand(_ name: String?) throws {
    guard let name else {
      StandardError.write(LockstepCommand.helpMessage() + "\n")
      throw Failure(.usage, nil)
    }
    let names = LockstepCommand.commandNames
    if name.hasPrefix("-") || names.contains(name) { return }
    let similar = names.min { $0.distance(to: name) < $1.distance(to: name) }
    let hint = similar.flatMap { $0.distance(to: name) <= 2 ? " Did you mean '\($0)'?" : nil }
    throw Failure(
      .usage, "there is no command '\(name.shortened)'.\(hint ?? "") See 'lockstep --help'.")
  }

  private static func end(_ failure: Failure) -> Never {
    if let message = failure.message { StandardError.say(message) }
    Interruption.endBySignal()
    exit(failure.status.rawValue)
  }

  /// The parser was asked for help, or does not understand its arguments.
  private static func endParsing(_ error: any Error) -> Never {
    let text = ArgumentOrder.unmarkedAll(LockstepCommand.fullMessage(for: error))
      .replacing(GlobalOptions.usage, with: "[<global options>]")
    if LockstepCommand.exitCode(for: error) == .success {
      if !text.isEmpty { try? StandardOutput.write(Array((text + "\n").utf8)) }
      exit(ExitStatus.done.rawValue)
    }
    // The message quotes arguments, which may hold anything.
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    StandardError.write(lines.map { $0.escapingControls + "\n" }.joined())
    exit(ExitStatus.usage.rawValue)
  }
}
