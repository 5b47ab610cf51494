public import EventLoop
import Glibc
import Logging
import Systemd

/// The service manager that started this process, if any: its descriptors and the notifications to
/// it. Belongs to the loop's thread.
public final class ServiceManager {
  private let socket: NotifySocket?
  private let watchdog: Watchdog?
  private var activation: Activation
  /// The listening sockets that the manager has made.
  public let listeners: [Int32]
  private var petting: EventLoop.Timer?
  private var lastStatus = ""

  /// Take the descriptors that the manager has passed, and remove its variables from the
  /// environment. Call it once, before there are other threads. Throws when the variables are
  /// malformed.
  public init() throws {
    activation = try Activation.take()
    listeners = activation.remove(named: Self.listenerName)
    socket = try NotifySocket()
    watchdog = try Watchdog()
    Environment.removeManagerVariables()
  }

  /// Whether the manager has stored a former process's state for this one.
  var hasStored: Bool { activation.entries.contains { $0.name == Self.stateName } }

  /// Whether there is a manager to notify.
  public var isPresent: Bool { socket != nil }

  static let listenerName = "lockstep"
  static let stateName = "state"
  static let connectionsName = "connections"

  // MARK: Notifications

  /// Report that the service is ready. From now on the loop sends the watchdog's heartbeat, as
  /// often as the manager asks.
  public func ready(status: String, on loop: Loop) {
    tell([.ready, .status(status)])
    lastStatus = status
    guard let watchdog, petting == nil else { return }
    // On the loop, so that a loop that hangs sends no heartbeat.
    let timer = EventLoop.Timer(on: loop) { [unowned self] in tell([.watchdog]) }
    timer.start(after: .milliseconds(1), repeating: watchdog.interval)
    petting = timer
  }

  /// Set the status that `systemctl status` shows.
  public func show(_ status: String) {
    guard status != lastStatus else { return }
    lastStatus = status
    tell([.status(status)])
  }

  /// Report that the configuration is being reloaded: `reloaded` must follow.
  public func reloading() {
    tell([.reloading(monotonicMicroseconds: Loop.monotonicNanoseconds() / 1000)])
  }

  public func reloaded() { tell([.ready]) }

  public func stopping(_ status: String) { tell([.stopping, .status(status)]) }

  /// Report that starting takes this much longer from now, at most.
  public func extend(by seconds: UInt64) {
    tell([.extendTimeout(microseconds: seconds * 1_000_000)])
  }

  private func tell(_ notifications: [Systemd.Notification]) {
    // A failed notification is no reason to stop: the manager will notice by itself.
    try? socket?.send(notifications, patience: .zero)
  }

  func close() {
    petting?.close()
    petting = nil
  }

  // MARK: The file-descriptor store

  /// Store a descriptor for the next process of the service. Returns whether the manager was told.
  func store(_ descriptor: Int32, as name: String) -> Bool {
    guard let socket else { return false }
    do throws(NotifyError) {
      // Without polling: a client that sends and closes meanwhile must not lose what it sent.
      try socket.send(
        .fdStore(name: name, polls: false), descriptors: [descriptor], patience: .seconds(1))
      return true
    } catch {
      return false
    }
  }

  /// Wait until the manager has read all notifications.
  func settle() { try? socket?.barrier(timeout: .seconds(2)) }

  /// Take what a former process has stored: its image, and its connections by their numbers. The
  /// manager is told to drop all of it, and unknown descriptors are closed.
  func takeStored(logger: Logger) -> Stored? {
    let images = activation.remove(named: Self.stateName)
    let parked = activation.remove(named: Self.connectionsName)
    for entry in activation.closeRest() {
      logger.warning("closed an unknown descriptor", metadata: ["name": "\(entry.name)"])
      forget(entry.name)
    }
    if !images.isEmpty { forget(Self.stateName) }
    if !parked.isEmpty { forget(Self.connectionsName) }
    var connections: [UInt64: Int32] = [:]
    for (number, descriptor) in parked.flatMap(ParkedDescriptors.take) {
      if connections[number] == nil {
        connections[number] = descriptor
      } else {
        Glibc.close(descriptor)
      }
    }
    for descriptor in parked { Glibc.close(descriptor) }
    guard images.count == 1, let image = images.first else {
      for descriptor in images { Glibc.close(descriptor) }
      // The former process did not complete its hand-over: the state of its connections is unknown.
      if !connections.isEmpty || !images.isEmpty {
        logger.error(
          "nothing is taken over: there are connections, and no state",
          metadata: ["connections": .number(connections.count)])
      }
      for descriptor in connections.values { Glibc.close(descriptor) }
      return nil
    }
    do throws(HandOverError) {
      return Stored(
        image: try HandOverMemory.read(image, limit: Self.imageLimit), memory: image,
        connections: connections)
    } catch {
      logger.error("nothing is taken over", metadata: ["reason": "\(error)"])
      for descriptor in [image] + connections.values { Glibc.close(descriptor) }
      return nil
    }
  }

  /// A former process's hand-over.
  struct Stored {
    let image: [UInt8]
    /// The memory that holds the image.
    let memory: Int32
    let connections: [UInt64: Int32]
  }

  /// A state of some gigabytes would take longer to hand over than to resume.
  private static let imageLimit = 4 << 30

  private func forget(_ name: String) {
    try? socket?.send(.fdStoreRemove(name: name), patience: .seconds(1))
  }
}
