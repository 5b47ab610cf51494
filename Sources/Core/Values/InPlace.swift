public import CBOR

/// A value that is looked at where it lies, without a copy.
///
/// What a pointer to a copyable value leads to is copied for each call that might write to that memory, as
/// those with an encoder might. A copy counts references to the texts and collections in the value: an
/// atomic write to memory that is often not in the cache, for which all that follows waits. A value that
/// cannot be copied is borrowed instead.
@frozen
@usableFromInline
struct InPlace<Content>: ~Copyable {
  @usableFromInline let content: Content
}

extension UnsafePointer {
  /// The value, to be looked at while nothing writes to it. A struct has the layout of its only field.
  @inlinable @inline(__always)
  var inPlace: UnsafePointer<InPlace<Pointee>> {
    UnsafeRawPointer(self).assumingMemoryBound(to: InPlace<Pointee>.self)
  }
}

extension UnsafeMutablePointer {
  @inlinable @inline(__always)
  var inPlace: UnsafePointer<InPlace<Pointee>> { UnsafePointer(self).inPlace }
}

extension InPlace where Content: Synchronizable {
  @inlinable @inline(__always)
  borrowing func prefetchStorage() { content.prefetchStorage() }

  @inlinable @inline(__always)
  borrowing func encode(into encoder: inout CBOREncoder) { content.encode(into: &encoder) }

  @inlinable @inline(__always)
  borrowing func encodeReplacement(into encoder: inout CBOREncoder) {
    content.encodeReplacement(into: &encoder)
  }

  @inlinable @inline(__always)
  borrowing func encodeDifference(
    from old: borrowing InPlace, into encoder: inout CBOREncoder
  ) -> Bool {
    content.encodeDifference(from: old.content, into: &encoder)
  }

  @inlinable @inline(__always)
  borrowing func digest(seed: HashSeed) -> UInt64 { content.digest(seed: seed) }

  @inlinable @inline(__always)
  borrowing func isSame(as other: borrowing InPlace) -> Bool {
    content.isSame(as: other.content)
  }
}

extension InPlace where Content: SyncKey {
  @inlinable @inline(__always)
  borrowing func encode(into encoder: inout CBOREncoder) { content.encode(into: &encoder) }
}
