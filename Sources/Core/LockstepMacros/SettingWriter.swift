import SwiftSyntax

/// Writes the enumeration `Setting` of a struct: a case for every field under `@Settable`.
struct SettingWriter {
  /// The struct.
  let owner: Target
  let fields: [Field]
  /// The cases, with the types of the fields.
  private(set) var cases: [Case] = []
  private(set) var complaints = Complaints()

  init(_ owner: Target, _ fields: [Field]) {
    self.owner = owner
    self.fields = fields.filter { $0.settable != nil }
    for field in self.fields { read(field) }
  }

  private mutating func read(_ field: Field) {
    guard let mark = field.settable else { return }
    if field.isConstant {
      complaints.add("settableConstant", at: mark, "A constant cannot be set; make it a 'var'.")
    } else if field.isIgnored {
      complaints.add(
        "settableIgnored", at: mark, "An ignored field never travels, so no action can set it.")
    } else if let type = field.type ?? field.initialType {
      let payload = Case.Payload(label: nil, type: type, initial: nil)
      cases.append(Case(identifier: field.identifier, payload: [payload], isFallback: false))
    } else {
      complaints.add(
        "settableType", at: mark,
        "'\(field.name)' needs its type written out, which the action that sets it carries.")
    }
  }

  /// The declaration; none where no field may be set.
  var declaration: [String] {
    if cases.isEmpty { return [] }
    let target = Target(named: "Setting", in: owner)
    let writer = EnumerationWriter(
      target: target, cases: cases, isIndirect: false, isAction: false)
    let members =
      cases.map { "case \($0.identifier)(\($0.payload[0].type))" }
      + writer.members + [name, sameness, apply, fieldPaths]
      + ["\(owner.access)static var allFields: AllFields { AllFields() }"]
    let body = members.map { lines($0.split(separator: "\n").map(String.init)) }
    return [
      """
      \(owner.access)enum Setting: Lockstep.FieldSetting, Lockstep.CasePathable {
      \(body.joined(separator: "\n"))
      }
      """
    ]
  }

  private func member(_ declaration: String, _ statements: [String]) -> String {
    "\(owner.access)\(declaration) {\n\(lines(statements))\n}"
  }

  private var name: String {
    member(
      "var name: String",
      ["switch self {"] + cases.map { "case .\($0.identifier): return \"\($0.name)\"" } + ["}"])
  }

  private var sameness: String {
    member(
      "static func == (first: Self, second: Self) -> Bool", ["first.isSame(as: second)"])
  }

  private var apply: String {
    member(
      "func apply(to state: inout \(owner.simpleName))",
      ["switch self {"]
        + cases.map { "case .\($0.identifier)(let value): state.\($0.identifier) = value" } + ["}"])
  }

  private var fieldPaths: String {
    let entries = cases.flatMap { item in
      [
        "\(owner.access)var \(item.identifier): "
          + "Lockstep.SettableField<Setting, \(item.payload[0].type)> {",
        "  .init(\\.\(item.identifier)) { .\(item.identifier)($0) }", "}",
      ]
    }
    return "\(owner.access)struct AllFields: Sendable {\n\(lines(entries))\n}"
  }
}

extension Target {
  /// A type inside another one, and as visible.
  fileprivate init(named name: String, in outer: Target) {
    self.init(
      simpleName: name, name: "\(outer.name).\(name)", access: outer.access,
      mayStore: outer.mayStore)
  }
}

extension Case {
  /// Whether the case is that of an action which sets fields: `set(State.Setting)`.
  var setsFields: Bool {
    guard identifier == "set", payload.count == 1, payload[0].label == nil,
      let type = payload[0].type.as(MemberTypeSyntax.self), type.name.text == "Setting"
    else { return false }
    return type.baseType.trimmedDescription.hasSuffix("State")
  }
}

extension EnumerationWriter {
  /// The setting that an action carries.
  var setting: [String] {
    guard let item = cases.first(where: \.setsFields) else { return [] }
    return [
      """
      \(target.access)var setting: \(item.payload[0].type)? {
        guard case .set(let setting) = self else { return nil }
        return setting
      }
      """
    ]
  }
}
