import Testing
import Values

@Suite struct StringPrefixTests {
  @Test func `a text that fits is whole`() {
    #expect("ééé".prefix(bytes: 6) == "ééé")
    #expect("ééé".prefix(scalars: 1, ifOverBytes: 6) == "ééé")
  }

  @Test func `of a longer text the beginning is left, with an ellipsis`() {
    #expect("éééé".prefix(bytes: 6) == "é…")
    #expect("éééé".prefix(scalars: 2, ifOverBytes: 6) == "éé…")
    #expect("e\u{301}xxxx".prefix(scalars: 1, ifOverBytes: 6) == "e…")
  }
}
