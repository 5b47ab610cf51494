extension Double {
  /// The number with this many digits after the point.
  func fixed(_ digits: Int) -> String {
    guard isFinite, abs(self) < 1e15 else { return "\(self)" }
    var scale: Int64 = 1
    for _ in 0..<digits { scale *= 10 }
    let scaled = Int64((abs(self) * Double(scale)).rounded())
    let sign = self < 0 && scaled > 0 ? "-" : ""
    if digits == 0 { return "\(sign)\(scaled)" }
    let fraction = String(scaled % scale)
    let zeros = String(repeating: "0", count: digits - fraction.count)
    return "\(sign)\(scaled / scale).\(zeros)\(fraction)"
  }
}

extension Double {
  /// The number with three significant digits or more (fewer below 1), and no trailing zeros.
  fileprivate var significant: String {
    let text = fixed(self < 10 ? 2 : self < 100 ? 1 : 0)
    guard text.contains(".") else { return text }
    let digits = text.reversed().drop { $0 == "0" }.drop { $0 == "." }
    return String(digits.reversed())
  }
}

extension Duration {
  var inSeconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) * 1e-18
  }

  var inMicroseconds: Double { inSeconds * 1e6 }

  /// The length of time for people: `12.3 µs`, `4.56 ms`, `2 s`.
  var formatted: String {
    let seconds = inSeconds
    if seconds < 1e-3 { return "\((seconds * 1e6).significant) µs" }
    if seconds < 1 { return "\((seconds * 1e3).significant) ms" }
    return "\(seconds.significant) s"
  }
}

extension UInt64 {
  /// A number of bytes for people: `512 bytes`, `1.4 MB`.
  var asBytes: String {
    switch self {
    case ..<10_000: "\(self) bytes"
    case ..<10_000_000: "\((Double(self) / 1e3).fixed(0)) kB"
    case ..<10_000_000_000: "\((Double(self) / 1e6).fixed(1)) MB"
    default: "\((Double(self) / 1e9).fixed(1)) GB"
    }
  }

  /// The number with its thousands separated: `1,234,567`.
  var grouped: String {
    var result = ""
    for (index, digit) in String(self).reversed().enumerated() {
      if index > 0 && index % 3 == 0 { result.append(",") }
      result.append(digit)
    }
    return String(result.reversed())
  }
}
