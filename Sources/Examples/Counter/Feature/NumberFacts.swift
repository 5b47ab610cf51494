public import Lockstep

/// Provides facts about numbers.
public struct NumberFacts: Sendable {
  /// The fact about a number.
  public var fact: @Sendable (Int) async throws -> String

  public init(fact: @escaping @Sendable (Int) async throws -> String) { self.fact = fact }

  /// Facts from a table, and a sentence for numbers that are not in it.
  public static let builtIn = NumberFacts { number in
    table[number] ?? "\(number) is a number of which no fact is known."
  }

  private static let table = [
    0: "0 is the number of the year before the year 1 in astronomy.",
    1: "1 is the number that divides every integer.",
    2: "2 is the only even prime.",
    3: "3 is the number of spatial dimensions that we see.",
    4: "4 is the number of colours that suffice for any map.",
    5: "5 is the number of Platonic solids.",
    6: "6 is the smallest perfect number: 1 + 2 + 3.",
    7: "7 is the number of bridges of Königsberg.",
    8: "8 is the largest cube in the Fibonacci sequence.",
    9: "9 is the number of squares on a board of noughts and crosses.",
    10: "10 is the base of our numerals.",
    11: "11 is the number of players in a football team.",
    12: "12 is the number of edges of a cube.",
    13: "13 is the number of Archimedean solids.",
    14: "14 is the number of lines of a sonnet.",
    15: "15 is the number of red balls in snooker.",
    16: "16 is the only number that is x to the y and y to the x for different integers.",
    17: "17 is the number of wallpaper groups.",
    18: "18 is the number of holes of a golf course.",
    19: "19 is the number of years after which the moon's phases fall on the same days.",
    20: "20 is the number of amino acids that proteins are made of.",
    21: "21 is the number of spots on a die.",
    22: "22 is the number of yards between the wickets in cricket.",
    23: "23 is the number of people among whom two probably share a birthday.",
    24: "24 is the number of hours of a day.",
    25: "25 is the smallest square that is a sum of two squares.",
    26: "26 is the only number between a square and a cube.",
    27: "27 is the number of bones in a hand.",
    28: "28 is the second perfect number.",
    30: "30 is the number of edges of an icosahedron.",
    32: "32 is the freezing point of water in degrees Fahrenheit.",
    36: "36 is the number of inches in a yard.",
    37: "37 is the body's temperature in degrees Celsius.",
    42: "42 is the answer to life, the universe and everything.",
    52: "52 is the number of cards in a pack.",
    64: "64 is the number of squares of a chessboard.",
    88: "88 is the number of keys of a piano.",
    100: "100 is the boiling point of water in degrees Celsius.",
    118: "118 is the number of known elements.",
    366: "366 is the number of days of a leap year.",
    1729: "1729 is the smallest sum of two cubes in two ways.",
  ]
}

private enum NumberFactsKey: DependencyKey {
  static let liveValue = NumberFacts.builtIn
}

extension DependencyValues {
  public var numberFacts: NumberFacts {
    get { self[NumberFactsKey.self] }
    set { self[NumberFactsKey.self] = newValue }
  }
}
