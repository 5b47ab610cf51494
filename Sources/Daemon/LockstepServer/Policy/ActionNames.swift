import Access
import Values

/// The error of a name that is not one of a feature's actions.
struct UnknownAction: Error {
  /// What is wrong with it, and the names that exist.
  let message: String
}

extension ActionPattern {
  /// Parse a pattern that a person wrote, and check that the feature has such actions: a misspelt
  /// one would allow nothing, or, worse, deny nothing. O(its length and the names beside each of
  /// its words).
  init(_ text: String, of schema: Schema) throws(UnknownAction) {
    guard let pattern = ActionPattern(text) else {
      throw UnknownAction(
        message: "\(text.quoted) is no name of an action, nor `*` or a name with `.*` behind it")
    }
    try schema.checkAction(text)
    self = pattern
  }
}

extension Schema {
  /// Throws unless the feature has actions of these names.
  fileprivate func checkAction(_ text: String) throws(UnknownAction) {
    var kind: Kind? = action
    var parents: [Substring] = []
    for name in text.split(separator: ".", omittingEmptySubsequences: false) {
      if name == "*" && (parents.isEmpty || cases(of: kind) != nil) { return }
      guard let cases = cases(of: kind) else {
        // The schema has no names for actions that are not an enumeration.
        guard !parents.isEmpty else { return }
        throw UnknownAction(message: "\(parents.joined(separator: ".").quoted) carries no action")
      }
      guard let item = cases.first(where: { String.isSame($0.name, String(name)) }) else {
        let names = cases.map(\.name)
        let place = parents.isEmpty ? "" : " in \(parents.joined(separator: ".").quoted)"
        throw UnknownAction(
          message: "there is no action \(String(name).quoted)\(place); there are: "
            + names.sentence + String(name).near(names))
      }
      kind = item.fields.last?.kind
      parents.append(name)
    }
  }

  /// The cases of an enumeration, or of an optional one.
  private func cases(of kind: Kind?) -> [Case]? {
    switch kind {
    case .optional(let wrapped)?: return cases(of: wrapped)
    case .type(let name)?:
      guard case .enumeration(let cases)? = types[name] else { return nil }
      return cases
    case .bool?, .integer?, .unsigned?, .double?, .text?, .bytes?, .value?, .path?, .array?, .map?,
      nil:
      return nil
    }
  }
}
