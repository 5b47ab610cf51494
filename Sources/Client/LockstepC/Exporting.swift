import CBOR
public import CLockstep
import Glibc
import JSONCoding
import Values

private let exportFlags = LOCKSTEP_PRETTY.rawValue | LOCKSTEP_SORTED.rawValue

@c @implementation
public func lockstep_export_json(
  _ value: lockstep_value, _ flags: UInt32,
  _ json: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>!,
  _ length: UnsafeMutablePointer<Int>!
) -> Int32 {
  done { () throws(Failure) in
    guard let json, flags & ~exportFlags == 0 else { throw Failure(LOCKSTEP_ERROR_ARGUMENT) }
    var bytes: [UInt8] = []
    JSON.write(
      try value.present().pointee, into: &bytes, pretty: flags & LOCKSTEP_PRETTY.rawValue != 0,
      sortedKeys: flags & LOCKSTEP_SORTED.rawValue != 0)
    let copy = bytes.withUnsafeBytes { CTexts.allocate($0) }
    json.pointee = copy.assumingMemoryBound(to: CChar.self)
    length?.pointee = bytes.count
  }
}

@c @implementation
public func lockstep_export_cbor(
  _ value: lockstep_value, _ flags: UInt32,
  _ bytes: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>!,
  _ length: UnsafeMutablePointer<Int>!
) -> Int32 {
  done { () throws(Failure) in
    guard let bytes, flags & ~LOCKSTEP_SORTED.rawValue == 0 else {
      throw Failure(LOCKSTEP_ERROR_ARGUMENT)
    }
    let value = try value.present().pointee
    let encoded: [UInt8]
    if flags & LOCKSTEP_SORTED.rawValue != 0 {
      encoded = DeterministicCBOR.bytes(value)
    } else {
      var encoder = CBOREncoder()
      value.encode(into: &encoder)
      encoded = encoder.bytes
    }
    let copy = encoded.withUnsafeBytes { CTexts.allocate($0) }
    bytes.pointee = copy.assumingMemoryBound(to: UInt8.self)
    length?.pointee = encoded.count
  }
}

@c @implementation
public func lockstep_release(_ buffer: UnsafeMutableRawPointer!) { free(buffer) }
