import DaemonCore
import EventLoop
import Glibc
import Lockstep
import Logging
import Systemd
import Values

/// The image and the connections that a daemon takes over from its former process.
struct InheritedConnections<State: Synchronizable> {
  let image: HandOver<State>
  /// The memory that the image was read from, which the manager stored.
  private let memory: Int32
  /// The sockets of the connections in the image, by their numbers.
  private(set) var descriptors: [UInt64: Int32]

  init(image: HandOver<State>, memory: Int32, descriptors: [UInt64: Int32]) {
    self.image = image
    self.memory = memory
    self.descriptors = descriptors
    let known = Set(image.connections.map(\.id))
    for (id, descriptor) in descriptors where !known.contains(id) {
      Glibc.close(descriptor)
      self.descriptors[id] = nil
    }
  }

  /// Drop everything: nothing is taken over, and clients reconnect by themselves.
  func refuse() {
    for descriptor in descriptors.values { Glibc.close(descriptor) }
    forgetMemory()
  }

  /// Close the image's memory, which is not needed once all has been taken over.
  func forgetMemory() { Glibc.close(memory) }

  /// Store everything for the next process, because this one cannot start.
  func putBack(_ service: ServiceManager, _ logger: Logger) {
    do throws(SystemError) {
      let parked = try ParkedDescriptors.park(
        descriptors.sorted { $0.key < $1.key }.map { (number: $0.key, descriptor: $0.value) })
      let isStored =
        service.store(memory, as: ServiceManager.stateName)
        && service.store(parked, as: ServiceManager.connectionsName)
      Glibc.close(parked)
      service.settle()
      if isStored {
        logger.notice(
          "clients wait for a process that can begin",
          metadata: ["clients": .number(descriptors.count)])
      }
    } catch {
      logger.error("nothing is left to the next process", metadata: ["reason": "\(error)"])
    }
    refuse()
  }
}
