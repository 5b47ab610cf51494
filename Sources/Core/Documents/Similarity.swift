extension String {
  /// The edit distance: the number of characters to insert, remove or change to get the other text.
  package func distance(to other: String) -> Int {
    let (first, second) = (Array(self), Array(other))
    var row = Array(0...second.count)
    for (index, character) in first.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for column in second.indices {
        let change = diagonal + (character == second[column] ? 0 : 1)
        diagonal = row[column + 1]
        row[column + 1] = Swift.min(change, row[column] + 1, diagonal + 1)
      }
    }
    return row[second.count]
  }

  /// The name that was probably meant: at an edit distance of one; else with the same characters in
  /// another order, or at a distance of two for a word of six or more characters. In a shorter word,
  /// a distance of two would match almost any name.
  package func nearest(among names: [String]) -> String? {
    guard let near = names.min(by: { $0.distance(to: self) < $1.distance(to: self) }) else {
      return nil
    }
    let distance = near.distance(to: self)
    if distance <= 1 { return near }
    let letters = sorted()
    if let same = names.first(where: { $0.sorted() == letters }) { return same }
    return distance <= 2 && count >= 6 ? near : nil
  }

  /// A message of the option parser without its suggested option, unless that is near: the parser
  /// suggests '--mode' for '--nope'.
  package var withoutFarGuess: String {
    guard let option = self[...].place(of: "nknown option '"),
      let middle = self[option.upperBound...].place(of: "'. Did you mean '"),
      let end = self[middle.upperBound...].place(of: "'?")
    else { return self }
    let name = self[option.upperBound..<middle.lowerBound].drop { $0 == "-" }
    let guess = self[middle.upperBound..<end.lowerBound].drop { $0 == "-" }
    if String(name).nearest(among: [String(guess)]) != nil { return self }
    return self[..<middle.lowerBound] + "'." + self[end.upperBound...]
  }

  /// A question that suggests the nearest name, after a space; empty when no name is within
  /// `distance` characters, by default a third of the text's characters.
  package func hint(among names: [String], within distance: Int? = nil) -> String {
    let near = names.min { $0.distance(to: self) < $1.distance(to: self) }
    guard let near, near.distance(to: self) <= distance ?? Swift.max(1, count / 3) else {
      return ""
    }
    return " Did you mean \"\(near)\"?"
  }
}

extension Substring {
  /// Where a text is in this one first; nil if it is not. `firstRange(of:)` would link regular
  /// expressions: 1.5 MB.
  fileprivate func place(of text: String) -> Range<Index>? {
    var start = startIndex
    while start < endIndex {
      if self[start...].hasPrefix(text) {
        return start..<index(start, offsetBy: text.count)
      }
      formIndex(after: &start)
    }
    return nil
  }
}
