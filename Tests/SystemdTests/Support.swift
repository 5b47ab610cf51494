import Glibc
import Testing

/// Runs `body` on a new thread.
func onThread(_ body: @escaping @Sendable () -> Void) {
  final class Start: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }
  var thread = pthread_t()
  let status = pthread_create(
    &thread, nil,
    {
      if let start = $0 { Unmanaged<Start>.fromOpaque(start).takeRetainedValue().body() }
      return nil
    }, Unmanaged.passRetained(Start(body)).toOpaque())
  precondition(status == 0, "A test needs a thread.")
  pthread_detach(thread)
}
