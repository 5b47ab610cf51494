public import Values
import Wire

/// What a client asks of the report `parts`: which parts of the state it lists, without their
/// values.
public struct ListingRequest: Hashable, Sendable {
  /// The whole whose parts are listed, with the names that the schema gives.
  public let path: Path
  /// How many levels below it.
  public let depth: Int
  /// The most rows.
  public let limit: Int
  /// The part after which the rows begin, seen from the whole; empty: at the first.
  public let after: Path
  /// The revision of the state that is listed; nil: the newest.
  public let revision: UInt64?

  /// The most rows of one listing.
  public static let mostRows = 10_000

  /// The most levels of one listing: each costs a look at every byte.
  public static let mostLevels = 16

  /// The arguments of the query: a JSON Pointer, the depth, the limit, another JSON Pointer, which
  /// leads from there to the last part that is known, and a revision. Each may be left out.
  init(_ arguments: [String]) throws(ReportError) {
    path = try Path(argument: arguments.first ?? "", of: "parts")
    depth = try Self.number(arguments, 1, "depth", orElse: 1, most: Self.mostLevels)
    limit = try Self.number(arguments, 2, "limit", orElse: 1000, most: Self.mostRows)
    after = try Path(argument: arguments.count > 3 ? arguments[3] : "", of: "parts")
    guard arguments.count > 4 else {
      revision = nil
      return
    }
    guard let number = UInt64(arguments[4]) else {
      throw ReportError(.malformed, "parts: at which revision? Give a number.")
    }
    revision = number
  }

  private static func number(
    _ arguments: [String], _ index: Int, _ name: String, orElse standard: Int, most: Int
  ) throws(ReportError) -> Int {
    guard index < arguments.count else { return standard }
    guard let number = Int(arguments[index]), number >= 1, number <= most else {
      throw ReportError(.malformed, "parts: the \(name) is a number from 1 to \(most)")
    }
    return number
  }
}
