import CarsFeature
import Dispatch
@preconcurrency import Glibc
import LockstepClient

/// A list on the terminal, in the manner of a ReactorKit view: it sends its user's input as
/// actions, and shows the state. It decides nothing.
@MainActor final class CarListView {
  private var pulled: AsyncStream<Cars.Action>.Continuation?

  /// Bind the view to a store. The bindings end with the connection, and are made again for the
  /// next one.
  func bind(to cars: MirrorStore<Cars>) {
    cars.bind(to: self) { [weak self] _, bindings in
      guard let self else { return }

      // Action (view -> reactor)
      let (pulls, pulled) = AsyncStream<Cars.Action>.makeStream()
      self.pulled = pulled
      bindings.send(pulls)

      // State (reactor -> view)
      bindings.observe(\.carList) { [weak self] cars in self?.showRows(cars) }
      bindings.observe(\.loading) { [weak self] loading in if !loading { self?.endRefreshing() } }
    }
  }

  /// Handle the user's input: every line pulls to refresh. Returns at the end of the input.
  func run() async {
    for await _ in Self.lines { pulled?.yield(.reloadCarList) }
  }

  private func showRows(_ cars: [CarModel]) {
    for (row, car) in cars.enumerated() { show("\(row)  \(car.fullName)") }
  }

  private func endRefreshing() { show("-- press return to load anew --") }

  private static var lines: AsyncStream<String> {
    AsyncStream { continuation in
      // Reading blocks, which is not allowed in a task.
      DispatchQueue.global().async {
        while let line = readLine() { continuation.yield(line) }
        continuation.finish()
      }
    }
  }
}

/// Prints a line, also when standard output is a pipe. Flushing every stream would wait for the
/// reader of standard input.
func show(_ line: String) {
  print(line)
  fflush(stdout)
}
