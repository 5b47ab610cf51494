import ArgumentParser

/// Parsers of numbers on the command line, which give the reason that an argument is not one.
enum NumberArgument {
  /// A parser of whole numbers that are at least this.
  static func atLeast<Number: FixedWidthInteger & Sendable>(
    _ least: Number
  ) -> @Sendable (String) throws -> Number { within(least...Number.max) }

  /// A parser of whole numbers in a range.
  static func within<Number: FixedWidthInteger & Sendable>(
    _ range: ClosedRange<Number>
  ) -> @Sendable (String) throws -> Number {
    { argument in
      let text = ArgumentOrder.unmarked(argument)
      let number = Number(text)
      if let number, range.contains(number) { return number }
      let isLarge =
        number.map { $0 > range.upperBound }
        ?? (!text.isEmpty && text.allSatisfy { ("0"..."9").contains($0) })
      let bound = isLarge ? "at most \(range.upperBound)" : "at least \(range.lowerBound)"
      throw ValidationError("it is a whole number, \(bound).")
    }
  }
}

extension Seconds {
  /// Parse a length of time.
  static func read(_ argument: String) throws -> Seconds {
    guard let seconds = Double(ArgumentOrder.unmarked(argument)), seconds > 0, seconds < 1e9 else {
      throw ValidationError("it is a number of seconds above 0 and below 1000000000.")
    }
    return Seconds(.seconds(seconds))
  }
}
