/// The bytes of a hex string. An invalid digit traps, because it is a mistake in the test.
func bytes(_ hex: String) -> [UInt8] {
  let digits = hex.map { UInt8($0.hexDigitValue!) }
  precondition(digits.count.isMultiple(of: 2), "Half a byte in \(hex).")
  return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

func hex(_ bytes: some Sequence<UInt8>) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var text: [UInt8] = []
  for byte in bytes { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
  return String(decoding: text, as: UTF8.self)
}
