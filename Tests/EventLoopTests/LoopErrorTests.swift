import EventLoop
import Glibc
import Testing

@Suite struct LoopErrorTests {
  @Test func `an error says which operation failed, and why`() {
    let error = LoopError(code: -EADDRINUSE, operation: "bind /run/a.sock")
    #expect(error.name == "EADDRINUSE")
    #expect(error.description == "bind /run/a.sock: address already in use (EADDRINUSE)")
  }

  @Test func `an unknown code still has a description`() {
    #expect(LoopError(code: -9999, operation: "try").description.contains("9999"))
  }
}
