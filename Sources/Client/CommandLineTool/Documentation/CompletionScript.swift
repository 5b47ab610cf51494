import ArgumentParser
import EventLoop
import Glibc

/// Scripts that complete the command line in a shell.
enum CompletionScript {
  /// The command line as it is typed: global options may come in front of the command.
  private struct Typed: ParsableCommand {
    static var configuration: CommandConfiguration { LockstepCommand.configuration }
    @OptionGroup var options: GlobalOptions
  }

  /// The script that the arguments request; nil if they request none.
  static func requested(by arguments: [String]) throws(Failure) -> String? {
    guard let first = arguments.first, first.hasPrefix("--generate-completion-script") else {
      return nil
    }
    let words = first.split(separator: "=").dropFirst().map(String.init) + arguments.dropFirst()
    guard let name = words.first ?? CompletionShell.autodetected()?.rawValue,
      let shell = CompletionShell(rawValue: name)
    else {
      let names = CompletionShell.allCases.map(\.rawValue).joined(separator: ", ")
      throw Failure(.usage, "which shell? There are scripts for: \(names).")
    }
    return Typed.completionScript(for: shell)
  }
}
