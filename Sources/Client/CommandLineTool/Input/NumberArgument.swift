import ArgumentParser

/// Parsers of numbers on the command line, which give the reason that an argument is not one.
enum NumberArgument {
  /// A parser of whole numbers that are at least this.
  static func atLeast<Number: FixedWidthInteger & Sendable>(
    _ least: Number
  ) -> @Sendable (String) throws -> Number {
    { argument in
      let text = ArgumentOrder.unmarked(argument)
      if let number = Number(text), number >= least { return number }
      let isLarge =
        !text.isEmpty && text.allSatisfy { ("0"..."9").contains($0) } && Number(text) == nil
      throw ValidationError(
        "it is a whole number, \(isLarge ? "at most \(Number.max)" : "at least \(least)").")
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
