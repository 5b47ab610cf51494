import Lockstep
import LockstepServer
import ShelfFeature

/// Its critic hears nothing at volume 0, and does not come to an end at 1.
@main struct ShelfDaemon: LockstepDaemon {
  struct TooQuiet: Error, CustomStringConvertible {
    var description: String { "too quiet" }
  }

  var feature: some Reducer<Shelf.State, Shelf.Action> {
    Shelf(searches: true)
      .dependency(
        \.critic,
        Critic(name: "the local paper") { volume in
          if volume == 0 { throw TooQuiet() }
          if volume == 1 { try await Task.sleep(for: .seconds(3600)) }
          return "the local paper heard it at \(volume)"
        })
  }

  var middleware: [any Middleware<Shelf.State, Shelf.Action>] { [Neighbour()] }
}
