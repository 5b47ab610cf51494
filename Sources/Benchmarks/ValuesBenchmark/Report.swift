/// One figure for one size, and its bound.
struct Figure {
  enum Unit: String {
    case nanoseconds = "ns"
    case ratio = "×"
  }

  var name: String
  var entries: Int
  var value: Double
  var unit: Unit
  var limit: Double?

  var isMissed: Bool { limit.map { value > $0 } ?? false }

  var text: String {
    switch unit {
    case .ratio: Self.decimal(value, places: 2) + (isMissed ? " !" : "  ")
    case .nanoseconds:
      value < 1e4
        ? Self.decimal(value, places: value < 100 ? 1 : 0) + " ns"
        : value < 1e7
          ? Self.decimal(value / 1e3, places: 1) + " µs"
          : Self.decimal(value / 1e6, places: 1) + " ms"
    }
  }

  var json: String {
    let limit = limit.map { #","limit":\#($0),"missed":\#(isMissed)"# } ?? ""
    let unit = unit == .ratio ? "ratio" : "ns"
    return
      #"{"name":"\#(name)","entries":\#(entries),"value":\#(value),"unit":"\#(unit)"\#(limit)}"#
  }

  static func decimal(_ value: Double, places: Int) -> String {
    var scale = 1
    for _ in 0..<places { scale *= 10 }
    let scaled = Int((value * Double(scale)).rounded())
    if places == 0 { return String(scaled) }
    let fraction = String(scaled % scale)
    return "\(scaled / scale)." + String(repeating: "0", count: places - fraction.count) + fraction
  }
}

/// All figures of a run.
struct Report {
  private(set) var figures: [Figure] = []

  mutating func add(
    _ name: String, _ entries: Int, _ value: Double, _ unit: Figure.Unit = .nanoseconds,
    limit: Double? = nil
  ) {
    figures.append(
      Figure(name: name, entries: entries, value: value, unit: unit, limit: limit))
  }

  /// Whether a figure exceeds its bound; the table marks it with an exclamation mark.
  var hasMissed: Bool { figures.contains(where: \.isMissed) }

  var json: String { "[\n  " + figures.map(\.json).joined(separator: ",\n  ") + "\n]" }

  /// A row for each name, a column for each size, and the bounds in the last column.
  var table: String {
    var names: [String] = []
    for figure in figures where !names.contains(figure.name) { names.append(figure.name) }
    let sizes = Set(figures.map(\.entries)).sorted()
    var lines = [Self.row("", sizes.map { "\($0)  " }, "")]
    for name in names {
      let row = figures.filter { $0.name == name }
      let cells = sizes.map { size in row.first { $0.entries == size }?.text ?? "" }
      let bounds = row.compactMap { figure in
        figure.limit.map { "≤ \(Figure.decimal($0, places: 0)) at \(figure.entries)" }
      }
      lines.append(Self.row(name, cells, bounds.joined(separator: ", ")))
    }
    return lines.joined(separator: "\n")
  }

  private static func row(_ name: String, _ cells: [String], _ bound: String) -> String {
    var line = name + String(repeating: " ", count: max(0, 46 - name.count))
    for cell in cells { line += String(repeating: " ", count: max(1, 13 - cell.count)) + cell }
    return bound.isEmpty ? line : line + "  " + bound
  }
}
