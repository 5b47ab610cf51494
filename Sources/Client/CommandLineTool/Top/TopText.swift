/// Numbers in few columns, with their units.
enum TopText {
  /// A count: `12,345`, `1,234k`, `12.3M`.
  static func count(_ number: UInt64) -> String {
    switch number {
    case ..<100_000: number.grouped
    case ..<10_000_000: "\((number / 1000).grouped)k"
    case ..<1_000_000_000: "\((Double(number) / 1e6).fixed(1))M"
    default: "\((Double(number) / 1e9).fixed(1))G"
    }
  }

  /// A number of times a second; `-` where it is not known.
  static func rate(_ perSecond: Double?) -> String {
    guard let perSecond, perSecond.isFinite, perSecond < 1e18 else { return "-" }
    if perSecond > 0, perSecond < 9.95 { return perSecond.fixed(1) }
    return count(UInt64(perSecond.rounded()))
  }

  /// A number of bytes: `0`, `512 B`, `14 kB`, in seven columns.
  static func bytes(_ number: UInt64?) -> String {
    guard let number else { return "-" }
    let count = Double(number)
    return switch number {
    case 0: "0"
    case ..<10_000: "\(number) B"
    case ..<9_999_500: "\((count / 1e3).fixed(0)) kB"
    case ..<99_950_000: "\((count / 1e6).fixed(1)) MB"
    case ..<9_999_500_000: "\((count / 1e6).fixed(0)) MB"
    case ..<99_950_000_000: "\((count / 1e9).fixed(1)) GB"
    default: "\((count / 1e9).fixed(0)) GB"
    }
  }

  static func bytes(perSecond: Double?) -> String {
    guard let perSecond, perSecond.isFinite, perSecond < 1e18 else { return "-" }
    return bytes(UInt64(perSecond.rounded()))
  }

  /// A length of time in two units at most: `250 ms`, `3.4 s`, `5 min`, `3 d 4 h`.
  static func time(milliseconds: UInt64) -> String {
    let seconds = milliseconds / 1000
    switch seconds {
    case ..<1: return "\(milliseconds) ms"
    case ..<10: return "\((Double(milliseconds) / 1000).fixed(1)) s"
    case ..<60: return "\(seconds) s"
    case ..<3600: return "\(seconds / 60) m \(seconds % 60) s"
    case ..<86_400: return "\(seconds / 3600) h \(seconds / 60 % 60) m"
    default: return "\((seconds / 86_400).grouped) d \(seconds / 3600 % 24) h"
    }
  }

  /// A length of time in one unit: `250 ms`, `3.4 s`, `59 m`, `3 d`.
  static func age(milliseconds: UInt64) -> String {
    let seconds = milliseconds / 1000
    return switch seconds {
    case ..<60: time(milliseconds: milliseconds)
    case ..<3600: "\(seconds / 60) m"
    case ..<86_400: "\(seconds / 3600) h"
    default: "\(seconds / 86_400) d"
    }
  }

  static func percent(_ share: Double?) -> String {
    guard let share, share.isFinite else { return "-" }
    let percent = share * 100
    return "\(percent > 0 && percent < 9.95 ? percent.fixed(1) : percent.fixed(0)) %"
  }
}
