import EventLoop
import Glibc
import Lockstep
import Sessions
import Systemd
import Values

/// What a daemon takes over from a former process of it.
struct Inheritance<State: Synchronizable> {
  let image: HandOver<State>
  /// The sockets of the connections in the image, by their numbers.
  private(set) var descriptors: [UInt64: Int32]

  init(image: HandOver<State>, descriptors: [UInt64: Int32]) {
    self.image = image
    self.descriptors = descriptors
    let known = Set(image.connections.map(\.id))
    for (id, descriptor) in descriptors where !known.contains(id) {
      Glibc.close(descriptor)
      self.descriptors[id] = nil
    }
  }

  /// Nothing is taken over after all: clients come back by themselves.
  func refuse() { for descriptor in descriptors.values { Glibc.close(descriptor) } }
}
