extension String {
  /// How many characters have to be put in, taken out, or changed to get the other text.
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

  /// The one of the names that was probably meant: one character off, two in a word of six or more, or
  /// with the same characters in another order. In a short word, two are as good as any.
  package func nearest(among names: [String]) -> String? {
    let letters = sorted()
    if let same = names.first(where: { $0.sorted() == letters }) { return same }
    let near = names.min { $0.distance(to: self) < $1.distance(to: self) }
    guard let near, near.distance(to: self) <= (count < 6 ? 1 : 2) else { return nil }
    return near
  }

  /// A message of the option parser without its guess at an option, where that is not near: it takes
  /// '--mode' for what was meant by '--nope'.
  package var withoutFarGuess: String {
    guard let option = firstRange(of: "nknown option '"),
      let middle = self[option.upperBound...].firstRange(of: "'. Did you mean '"),
      let end = self[middle.upperBound...].firstRange(of: "'?")
    else { return self }
    let name = self[option.upperBound..<middle.lowerBound].drop { $0 == "-" }
    let guess = self[middle.upperBound..<end.lowerBound].drop { $0 == "-" }
    if String(name).nearest(among: [String(guess)]) != nil { return self }
    return self[..<middle.lowerBound] + "'." + self[end.upperBound...]
  }

  /// A question for someone who probably mistyped one of the names, behind a space; empty when none
  /// is close: within so many characters, a third of them if not said otherwise.
  package func hint(among names: [String], within distance: Int? = nil) -> String {
    let near = names.min { $0.distance(to: self) < $1.distance(to: self) }
    guard let near, near.distance(to: self) <= distance ?? Swift.max(1, count / 3) else {
      return ""
    }
    return " Did you mean \"\(near)\"?"
  }
}
