import Journal
import Testing

@Suite struct JournalErrorTests {
  @Test func `An error reads as its text`() {
    #expect("\(JournalError(.full, "the disk is full"))" == "the disk is full")
  }
}
