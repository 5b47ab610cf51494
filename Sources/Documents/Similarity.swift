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
