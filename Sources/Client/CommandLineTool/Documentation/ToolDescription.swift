import Values

/// A command as swift-argument-parser describes it (`--experimental-dump-help`).
struct CommandDescription {
  let name: String
  let abstract: String
  let discussion: String
  let commands: [CommandDescription]
  let arguments: [ArgumentDescription]

  init?(_ value: Value?) {
    guard let value, let name = value.string("commandName") else { return nil }
    self.name = name
    abstract = value.string("abstract") ?? ""
    discussion = value.string("discussion") ?? ""
    commands = value.elements("subcommands").filter(\.isShown).compactMap { .init($0) }
      .filter { $0.name != "help" }
    arguments = value.elements("arguments").filter(\.isShown).compactMap { .init($0) }
  }

  /// The arguments that are the command's own.
  var ownArguments: [ArgumentDescription] {
    arguments.filter { !$0.isGlobal && !$0.isBuiltIn }
  }
}

/// An argument, option or flag.
struct ArgumentDescription {
  let kind: String
  /// With its dashes, if it has some.
  let names: [String]
  let valueName: String
  let abstract: String
  let discussion: String
  let defaultValue: String?
  let isOptional: Bool
  let isRepeating: Bool
  let section: String?

  init?(_ value: Value) {
    guard let kind = value.string("kind") else { return nil }
    self.kind = kind
    names = value.elements("names").compactMap { name in
      name.string("name").map { (name.string("kind") == "long" ? "--" : "-") + $0 }
    }
    valueName = value.string("valueName") ?? "value"
    abstract = value.string("abstract") ?? ""
    discussion = value.string("discussion") ?? ""
    defaultValue = value.string("defaultValue")
    isOptional = value.child("isOptional") == true
    isRepeating = value.child("isRepeating") == true
    section = value.string("sectionTitle")
  }

  var isPositional: Bool { kind == "positional" }
  var isFlag: Bool { kind == "flag" }
  var isGlobal: Bool { section == "Global Options" }
  var isBuiltIn: Bool { names.contains("--help") || names.contains("--version") }
}

extension Value {
  fileprivate var isShown: Bool { child("shouldDisplay") != false }

  fileprivate func string(_ name: String) -> String? {
    guard case .text(let text)? = child(.text(name)) else { return nil }
    return text
  }

  fileprivate func elements(_ name: String) -> [Value] {
    guard case .array(let elements)? = child(.text(name)) else { return [] }
    return Array(elements)
  }
}
