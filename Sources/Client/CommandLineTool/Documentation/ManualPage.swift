import Values

/// A manual page in mdoc(7), made from a tool's description of itself.
///
/// swift-argument-parser has a generator of such pages (1.8), which writes a discussion as one text:
/// it has no sections for examples, files, exit status and environment, and repeats the global
/// options for each command.
struct ManualPage {
  private let tool: CommandDescription
  private let section: Int
  private let date: String
  private let seeAlso: [String]

  /// Nil when the value describes no tool.
  init?(_ value: Value, section: Int, date: String, seeAlso: [String]) {
    guard let tool = CommandDescription(value.child("command")) else { return nil }
    self.tool = tool
    self.section = section
    self.date = date
    self.seeAlso = seeAlso
  }

  var text: String {
    let discussion = ManualText(tool.discussion)
    var lines = head
    lines += [".Sh DESCRIPTION", tool.abstract.roff] + discussion.body
    lines += commands
    lines += options(tool.arguments.filter { !$0.isBuiltIn }, heading: "OPTIONS")
    // Each command repeats the global options; once is enough.
    let globals = tool.commands.first?.arguments.filter { $0.isGlobal || $0.isBuiltIn } ?? []
    lines += options(globals, heading: "GLOBAL OPTIONS")
    // The order of sections that mdoc(7) asks for.
    for heading in [
      "OTHER NAMES", "ENVIRONMENT", "FILES", "EXIT STATUS", "EXAMPLES", "DIAGNOSTICS",
    ] {
      if let section = discussion.sections[heading] { lines += [".Sh \(heading)"] + section }
    }
    if !seeAlso.isEmpty { lines += [".Sh SEE ALSO"] + references }
    return lines.joined(separator: "\n") + "\n"
  }

  private var head: [String] {
    let abstract = tool.abstract.first.map { $0.lowercased() + tool.abstract.dropFirst() } ?? ""
    return [
      ".\\\" Made by Scripts/make-documentation; edit the tool's help instead.",
      ".Dd \(date)", ".Dt \(tool.name.uppercased()) \(section)", ".Os Lockstep", ".Sh NAME",
      ".Nm \(tool.name)", ".Nd \(abstract.trimmingDot.roff)", ".Sh SYNOPSIS", ".Nm",
    ] + (tool.commands.isEmpty ? synopsis(tool) : [".Ar command", ".Op Ar argument ..."])
  }

  private var commands: [String] {
    if tool.commands.isEmpty { return [] }
    return [".Sh COMMANDS"]
      + tool.commands.flatMap { command -> [String] in
        let discussion = ManualText(command.discussion)
        return [".Ss \(command.name)", ".Nm \(tool.name)", ".Cm \(command.name)"]
          + synopsis(command) + [".Pp", command.abstract.roff] + discussion.body
          + list(command.ownArguments) + examples(discussion)
      }
  }

  private func examples(_ discussion: ManualText) -> [String] {
    discussion.sections["EXAMPLES"].map { [".Pp", "Examples:"] + $0 } ?? []
  }

  private func synopsis(_ command: CommandDescription) -> [String] {
    command.ownArguments.sorted { !$0.isPositional && $1.isPositional }.map { argument in
      let dots = argument.isRepeating ? " ..." : ""
      let isOptional = argument.isOptional || argument.isFlag
      return (isOptional ? ".Op " : ".") + argument.macros + dots
    }
  }

  private func options(_ arguments: [ArgumentDescription], heading: String) -> [String] {
    arguments.isEmpty ? [] : [".Sh \(heading)"] + list(arguments)
  }

  private func list(_ arguments: [ArgumentDescription]) -> [String] {
    if arguments.isEmpty { return [] }
    return [".Bl -tag -width Ds"]
      + arguments.flatMap { argument -> [String] in
        var text = [argument.abstract]
        if !argument.discussion.isEmpty { text.append(argument.discussion) }
        if let value = argument.defaultValue, !argument.isFlag, !value.isEmpty {
          text.append("The default is \(value).")
        }
        return [".It \(argument.macros)"] + text.map(\.roff)
      } + [".El"]
  }

  private var references: [String] {
    seeAlso.enumerated().map { index, page in
      let parts = page.split { $0 == "(" || $0 == ")" }
      let comma = index < seeAlso.count - 1 ? " ," : ""
      return ".Xr \(parts.map(String.init).joined(separator: " "))\(comma)"
    }
  }
}

extension ArgumentDescription {
  /// The argument as mdoc macros: `Fl -count Ar number`.
  fileprivate var macros: String {
    let value = "Ar \(valueName.roffArgument)"
    if isPositional { return value }
    let flags = names.map { "Fl \($0.dropFirst())" }.joined(separator: " , ")
    return isFlag ? flags : "\(flags) \(value)"
  }
}
