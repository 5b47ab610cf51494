import CBOR
import ClientCore
import Lockstep
import LockstepClient
import LockstepStore
import Schemas
import Testing
import Values
import Wire

/// A program imports every module of the client's product.
@Suite struct NamesTests {
  @Test func `the standard library's names mean what they mean`() {
    #expect(Mirror(reflecting: (first: 1, second: 2)).children.count == 2)
    let strings: [String] = Array(Set(["a"])) + Dictionary(uniqueKeysWithValues: [("b", 1)]).keys
    #expect(strings == ["a", "b"])
    #expect(Result<Int, Never>.success(1) == .success(1))
    let range: Range<Int> = 0..<2
    #expect(range.contains(Slice(base: [0, 1], bounds: 1..<2).first ?? 2))
  }
}
