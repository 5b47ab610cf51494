extension Duration {
  /// Whole milliseconds; 0 if negative.
  var milliseconds: UInt64 {
    let (seconds, attoseconds) = components
    return UInt64(clamping: seconds) * 1000 + UInt64(clamping: attoseconds / 1_000_000_000_000_000)
  }
}
