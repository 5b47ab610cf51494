import Dispatch
import Glibc

/// Receives a store's warnings about errors that stop nothing: a call from the wrong isolation, an
/// action sent while another is reduced, an effect that failed.
public struct StoreWarnings: Sendable {
  /// Called with one warning: sentences, without a line break at the end.
  public let report: @Sendable (String) -> Void

  public init(_ report: @escaping @Sendable (String) -> Void) { self.report = report }

  /// One line on the standard error stream for each.
  public static let standardError = StoreWarnings { text in
    let line = Array("lockstep: \(text)\n".utf8)
    _ = line.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
  }

  /// Drops all warnings.
  public static let none = StoreWarnings { _ in }
}

/// The isolation in which an effect's actions reach the store.
public enum EffectDelivery: Hashable, Sendable {
  /// The actions hop to the store's isolation.
  case hopping
  /// The actions are handled where the effect sends them. A store with an isolation warns when that
  /// is elsewhere.
  case inPlace
}

/// Checks that a store is used in its own isolation.
///
/// The isolation of code is known at compile time, and passed by `#isolation`. Code that is
/// compiled without isolation may still run on the main actor, which can be detected by its queue;
/// whether it runs in another actor cannot be detected, so it then counts as elsewhere.
struct ThreadCheck: Sendable {
  /// Weak, because the isolation is often the owner of the store.
  private weak let isolation: (any Actor)?
  private let name: String
  let isStrict: Bool
  let warnings: StoreWarnings

  init(_ isolation: (any Actor)?, isStrict: Bool, warnings: StoreWarnings) {
    self.isolation = isolation
    self.isStrict = isStrict
    self.warnings = warnings
    name = isolation.map { "\(type(of: $0))" } ?? "none"
  }

  /// The isolation of the store; nil if it has none, or when the actor is released.
  var place: (any Actor)? { isolation }

  /// Warn unless the caller is in the store's isolation.
  func callAsFunction(_ caller: (any Actor)?, _ act: @autoclosure () -> Act) {
    guard let isolation, caller !== isolation else { return }
    if isolation === MainActor.shared, MainQueue.isCurrent { return }
    let text = act().text(name)
    precondition(!isStrict, text)
    warnings.report(text)
  }

  /// An operation on a store, for the text of the warning.
  enum Act {
    case initialize
    case scope
    case send(String)
    case effectAction(String, effect: String, place: String, from: String)
    case effectEnd(effect: String, place: String, from: String)

    func text(_ isolation: String) -> String {
      switch self {
      case .initialize:
        """
        A store was initialized outside of its isolation, \(isolation). A store that is used from \
        several threads is made by Store.unchecked.
        """
      case .scope:
        """
        Store.scope was called outside of the store's isolation, \(isolation). A store, and every \
        store scoped from it, is used where it was made.
        """
      case .send(let action):
        """
        Store.send was called outside of the store's isolation, \(isolation). Action: \(action). \
        Send it from there, or from an effect, whose actions come to the store by themselves.
        """
      case .effectAction(let action, let effect, let place, let origin):
        """
        An effect sent an action outside of the store's isolation, \(isolation). Action: \
        \(action). Effect "\(effect)", \(place), returned for: \(origin). Make the store with \
        EffectDelivery.hopping.
        """
      case .effectEnd(let effect, let place, let origin):
        """
        An effect ended outside of the store's isolation, \(isolation). Effect "\(effect)", \
        \(place), returned for: \(origin). Make the store with EffectDelivery.hopping.
        """
      }
    }
  }
}

/// The queue on which the main actor runs: not always the main thread.
private enum MainQueue {
  private static let mark: DispatchSpecificKey<Bool> = {
    let mark = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: mark, value: true)
    return mark
  }()

  static var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) == true }
}
