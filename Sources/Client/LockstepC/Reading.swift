public import CLockstep
import ClientCore
import Glibc
import Values

// Reading mirrors through values, which are addresses in them.

extension ValueStore {
  /// What a caller gets for a value; an absent one without an address.
  func value(at address: UnsafePointer<Value>?) -> lockstep_value {
    lockstep_value(
      connection: handle.map { OpaquePointer($0) }, generation: handle?.pointee.generation ?? 0,
      place: address.map { UnsafeRawPointer($0) })
  }
}

extension lockstep_value {
  /// The value of a lookup that failed: its generation is the error.
  fileprivate init(_ failure: Failure) {
    self.init(
      connection: nil, generation: UInt64(bitPattern: Int64(failure.code)), place: nil)
  }

  /// The address of the value; nil if it is absent. Throws the error of the lookup that led to it.
  @inline(__always)
  fileprivate func resolve() throws(Failure) -> UnsafePointer<Value>? {
    guard connection != nil else {
      let code = Int64(bitPattern: generation)
      if code == 0 { return nil }
      throw Failure(lockstep_error(rawValue: Int32(clamping: min(code, -1))))
    }
    guard try Handle.resolve(connection).pointee.generation == generation else {
      throw Failure(LOCKSTEP_ERROR_STALE)
    }
    return place?.assumingMemoryBound(to: Value.self)
  }

  /// The address of the value, which must not be absent.
  @inline(__always)
  func present() throws(Failure) -> UnsafePointer<Value> {
    guard let address = try resolve() else { throw Failure(LOCKSTEP_ERROR_ABSENT) }
    return address
  }

  /// Another value of the same mirror.
  @inline(__always)
  fileprivate func other(at address: UnsafePointer<Value>?) -> lockstep_value {
    lockstep_value(
      connection: connection, generation: generation, place: address.map { UnsafeRawPointer($0) })
  }
}

/// The value that a lookup finds, or its failure as a value.
private func found(_ body: () throws(Failure) -> lockstep_value) -> lockstep_value {
  do throws(Failure) {
    return try body()
  } catch {
    return lockstep_value(error)
  }
}

/// 0, or the error that a function throws.
func done(_ body: () throws(Failure) -> Void) -> Int32 {
  do throws(Failure) {
    try body()
    return 0
  } catch {
    return error.code
  }
}

/// The value at a JSON Pointer inside the value at an address; NULL is the value itself.
private func walk(
  _ address: UnsafePointer<Value>?, _ pointer: UnsafePointer<CChar>?
) throws(Failure) -> UnsafePointer<Value>? {
  guard let pointer, pointer.pointee != 0 else { return address }
  let (slash, tilde) = (CChar(0x2f), CChar(0x7e))
  var (address, cursor) = (address, pointer)
  while let found = address, cursor.pointee == slash {
    let start = cursor + 1
    var end = start
    while end.pointee != 0 && end.pointee != slash && end.pointee != tilde { end += 1 }
    if end.pointee == tilde { break }
    let token = UnsafeRawBufferPointer(start: start, count: end - start)
    guard let name = String(validating: token, as: UTF8.self) else {
      throw Failure(LOCKSTEP_ERROR_UTF8)
    }
    address = found.child(.text(name))
    if end.pointee == 0 { return address }
    cursor = end
  }
  // What has an escape, leads nowhere or is no pointer is rare: the rest is parsed, to be checked.
  for key in try Path(c: cursor).keys { address = address?.child(key) }
  return address
}

@c @implementation
public func lockstep_get(
  _ connection: OpaquePointer!, _ subscription: UInt64, _ pointer: UnsafePointer<CChar>!
) -> lockstep_value {
  found { () throws(Failure) in
    let connection = try Handle.resolve(connection).pointee.connection
    let root = try connection.values.root(of: subscription) { () throws(Failure) in
      guard let mirror = connection.session.mirror(subscription) else {
        throw Failure(LOCKSTEP_ERROR_SUBSCRIPTION)
      }
      return mirror.value.value(as: Value.self)
    }
    return connection.values.value(at: try walk(root, pointer))
  }
}

@c @implementation
public func lockstep_child(
  _ value: lockstep_value, _ pointer: UnsafePointer<CChar>!
) -> lockstep_value {
  found { () throws(Failure) in
    value.other(at: try walk(try value.resolve(), pointer))
  }
}

@c @implementation
public func lockstep_member(
  _ object: lockstep_value, _ name: UnsafePointer<CChar>!, _ length: Int
) -> lockstep_value {
  found { () throws(Failure) in
    guard name != nil || length == 0, length >= 0 else { throw Failure(LOCKSTEP_ERROR_ARGUMENT) }
    let bytes = UnsafeRawBufferPointer(start: name, count: length)
    guard let key = String(validating: bytes, as: UTF8.self) else {
      throw Failure(LOCKSTEP_ERROR_UTF8)
    }
    guard let address = try object.resolve() else { return object }
    guard case .object(let entries) = address.pointee else { throw Failure(LOCKSTEP_ERROR_KIND) }
    return object.other(at: entries.address(of: key))
  }
}

@c @implementation
public func lockstep_element(_ array: lockstep_value, _ index: Int) -> lockstep_value {
  found { () throws(Failure) in
    guard let address = try array.resolve() else { return array }
    guard case .array(let elements) = address.pointee else { throw Failure(LOCKSTEP_ERROR_KIND) }
    return array.other(at: elements.address(of: index))
  }
}

@c @implementation
public func lockstep_kind(_ value: lockstep_value) -> Int32 {
  do throws(Failure) {
    return Int32(try (value.resolve()?.pointee.number ?? LOCKSTEP_ABSENT).rawValue)
  } catch {
    return error.code
  }
}

extension Value {
  fileprivate var number: lockstep_kind {
    switch self {
    case .null: LOCKSTEP_NULL
    case .bool: LOCKSTEP_BOOLEAN
    case .integer, .unsigned: LOCKSTEP_INTEGER
    case .double: LOCKSTEP_DOUBLE
    case .text: LOCKSTEP_TEXT
    case .bytes: LOCKSTEP_BYTES
    case .array: LOCKSTEP_ARRAY
    case .object: LOCKSTEP_OBJECT
    }
  }
}

// MARK: Scalars

@c @implementation
public func lockstep_boolean(
  _ value: lockstep_value, _ result: UnsafeMutablePointer<Bool>!
) -> Int32 {
  done { () throws(Failure) in
    guard case .bool(let flag) = try value.present().pointee else {
      throw Failure(LOCKSTEP_ERROR_KIND)
    }
    result?.pointee = flag
  }
}

@c @implementation
public func lockstep_integer(
  _ value: lockstep_value, _ result: UnsafeMutablePointer<Int64>!
) -> Int32 {
  done { () throws(Failure) in
    switch try value.present().pointee {
    case .integer(let number): result?.pointee = number
    case .unsigned: throw Failure(LOCKSTEP_ERROR_RANGE)
    default: throw Failure(LOCKSTEP_ERROR_KIND)
    }
  }
}

@c @implementation
public func lockstep_unsigned(
  _ value: lockstep_value, _ result: UnsafeMutablePointer<UInt64>!
) -> Int32 {
  done { () throws(Failure) in
    switch try value.present().pointee {
    case .integer(let number):
      guard let exact = UInt64(exactly: number) else { throw Failure(LOCKSTEP_ERROR_RANGE) }
      result?.pointee = exact
    case .unsigned(let number): result?.pointee = number
    default: throw Failure(LOCKSTEP_ERROR_KIND)
    }
  }
}

@c @implementation
public func lockstep_double(
  _ value: lockstep_value, _ result: UnsafeMutablePointer<Double>!
) -> Int32 {
  done { () throws(Failure) in
    switch try value.present().pointee {
    case .integer(let number): result?.pointee = Double(number)
    case .unsigned(let number): result?.pointee = Double(number)
    case .double(let number): result?.pointee = number
    default: throw Failure(LOCKSTEP_ERROR_KIND)
    }
  }
}

// MARK: Texts and bytes

@c @implementation
public func lockstep_text(
  _ value: lockstep_value, _ text: UnsafeMutablePointer<UnsafePointer<CChar>?>!,
  _ length: UnsafeMutablePointer<Int>!
) -> Int32 {
  done { () throws(Failure) in
    let address = try value.present()
    guard case .text(let string) = address.pointee else { throw Failure(LOCKSTEP_ERROR_KIND) }
    let found = try utf8(of: string, at: UnsafeRawPointer(address), in: value)
    text?.pointee = found.text
    length?.pointee = found.length
  }
}

/// The UTF-8 of a text that is stored at an address, without a copy where that is possible.
///
/// Swift stores a text of at most 15 bytes in the string itself, and others in an object of their own
/// that does not move: the address that `withUTF8` gives remains valid while the string exists, which
/// the language does not promise, but its runtime does. Whether a short text is at the string's address
/// is seen by comparing it.
private func utf8(
  of string: String, at address: UnsafeRawPointer, in value: lockstep_value
) throws(Failure) -> (text: UnsafePointer<CChar>, length: Int) {
  var string = string
  let (length, stable) = string.withUTF8 { utf8 -> (Int, UnsafeRawPointer?) in
    guard let start = utf8.baseAddress, utf8.count > 0 else {
      return (0, UnsafeRawPointer(emptyText))
    }
    if utf8.count > 15 { return (utf8.count, UnsafeRawPointer(start)) }
    return (utf8.count, memcmp(start, address, utf8.count) == 0 ? address : nil)
  }
  if let stable { return (stable.assumingMemoryBound(to: CChar.self), length) }
  let connection = try Handle.resolve(value.connection).pointee.connection
  return (connection.values.copy(string), length)
}

@c @implementation
public func lockstep_bytes(
  _ value: lockstep_value, _ bytes: UnsafeMutablePointer<UnsafePointer<UInt8>?>!,
  _ length: UnsafeMutablePointer<Int>!
) -> Int32 {
  done { () throws(Failure) in
    guard case .bytes(let array) = try value.present().pointee else {
      throw Failure(LOCKSTEP_ERROR_KIND)
    }
    // The array's storage does not move, and the mirror keeps it.
    let start = array.withUnsafeBufferPointer { $0.baseAddress }
    bytes?.pointee =
      array.isEmpty ? UnsafeRawPointer(emptyText).assumingMemoryBound(to: UInt8.self) : start
    length?.pointee = array.count
  }
}

@c @implementation
public func lockstep_copy_text(
  _ value: lockstep_value, _ buffer: UnsafeMutablePointer<CChar>!, _ capacity: Int
) -> Int64 {
  do throws(Failure) {
    guard buffer != nil || capacity == 0, capacity >= 0 else {
      throw Failure(LOCKSTEP_ERROR_ARGUMENT)
    }
    guard case .text(var string) = try value.present().pointee else {
      throw Failure(LOCKSTEP_ERROR_KIND)
    }
    return Int64(string.withUTF8 { copy($0, to: buffer, capacity) })
  } catch {
    return Int64(error.code)
  }
}

/// Copy a text with a zero byte behind it, cut at a character if it does not fit.
private func copy(
  _ utf8: UnsafeBufferPointer<UInt8>, to buffer: UnsafeMutablePointer<CChar>?, _ capacity: Int
) -> Int {
  guard let buffer, capacity > 0 else { return utf8.count }
  var count = min(utf8.count, capacity - 1)
  // A byte 10xxxxxx continues a character.
  while count > 0, count < utf8.count, utf8[count] & 0xc0 == 0x80 { count -= 1 }
  if let start = utf8.baseAddress { memcpy(buffer, start, count) }
  buffer[count] = 0
  return utf8.count
}

// MARK: Collections

@c @implementation
public func lockstep_count(_ value: lockstep_value) -> Int64 {
  do throws(Failure) {
    switch try value.present().pointee {
    case .array(let elements): return Int64(elements.count)
    case .object(let entries): return Int64(entries.count)
    default: throw Failure(LOCKSTEP_ERROR_KIND)
    }
  } catch {
    return Int64(error.code)
  }
}

@c @implementation
public func lockstep_iterate(
  _ container: lockstep_value, _ iterator: UnsafeMutablePointer<lockstep_iterator>!
) -> Int32 {
  done { () throws(Failure) in
    guard let iterator else { throw Failure(LOCKSTEP_ERROR_ARGUMENT) }
    switch try container.present().pointee {
    case .array, .object: break
    default: throw Failure(LOCKSTEP_ERROR_KIND)
    }
    var begun = lockstep_iterator()
    begun.container = container
    iterator.pointee = begun
  }
}

@c @implementation
public func lockstep_next(_ iterator: UnsafeMutablePointer<lockstep_iterator>!) -> Int32 {
  do throws(Failure) {
    guard let iterator else { throw Failure(LOCKSTEP_ERROR_ARGUMENT) }
    let container = iterator.pointee.container
    let next = iterator.pointee.started == 0 ? 0 : iterator.pointee.index &+ 1
    switch try container.present().pointee {
    case .array(let elements):
      guard let address = elements.address(of: next) else { return 0 }
      iterator.pointee.value = container.other(at: address)
    case .object(let entries):
      var place = TrieMap<String, Value>.Place(
        leaf: iterator.pointee.leaf, index: iterator.pointee.offset)
      guard let (key, address) = entries.next(&place) else { return 0 }
      let name = try utf8(of: key.pointee, at: UnsafeRawPointer(key), in: container)
      (iterator.pointee.name, iterator.pointee.name_length) = (name.text, name.length)
      iterator.pointee.value = container.other(at: address)
      (iterator.pointee.leaf, iterator.pointee.offset) = (place.leaf, place.index)
    default: throw Failure(LOCKSTEP_ERROR_KIND)
    }
    iterator.pointee.index = next
    iterator.pointee.started = 1
    return 1
  } catch {
    return error.code
  }
}
