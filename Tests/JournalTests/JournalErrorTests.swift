import Journal
import Testing

@Suite struct JournalErrorTests {
  @Test func `The description of an error is its text`() {
    #expect("\(JournalError(.full, "the disk is full"))" == "the disk is full")
  }
}
