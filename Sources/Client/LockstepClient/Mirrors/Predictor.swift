import CBOR
import ClientCore
import Lockstep
import Synchronization
import Values
import Wire

/// Shows a mirror with the optimistic actions that are not in it yet.
protocol StatePredictor<State>: Sendable {
  associatedtype State: Synchronizable

  /// How the client calls itself, and what its reducers depend on.
  var label: String { get }
  var dependencies: DependencyValues { get }

  /// The state to show; nil if it is the mirror's own.
  func state(of subscription: Subscription<State>) -> State?
}

/// Reduces a mirror's optimistic actions on its confirmed state, when the state is read.
///
/// The reducer, which is the user's code, runs on the thread that reads the state, and under no lock of
/// the connection: threads that read at once may do the same work twice. What was shown last is kept, so
/// that a further action is reduced alone.
final class Predictor<R: Reducer>: StatePredictor {
  private typealias Shown = PredictedState<R.State>

  /// What is to be shown, as the session says.
  private enum Look {
    case confirmed
    case same(R.State)
    case view(OptimisticView, ServerMessage.Welcome)
  }

  let label: String
  var dependencies: DependencyValues { prediction.dependencies }
  private let prediction: Prediction<R>
  private let actions: ActionCoding<R.Action>
  private let last = Mutex<Shown?>(nil)

  init(_ prediction: Prediction<R>, _ actions: ActionCoding<R.Action>, label: String) {
    self.prediction = prediction
    self.actions = actions
    self.label = label
  }

  func state(of subscription: Subscription<R.State>) -> R.State? {
    let known = last.withLock { $0 }
    switch look(at: subscription, known) {
    case .confirmed:
      // The kept state would make the next changes copy what it shares.
      if known != nil { last.withLock { $0 = nil } }
      return nil
    case .same(let state): return state
    case .view(let view, let welcome):
      guard let shown = show(view, welcome, after: known) else { return nil }
      last.withLock { last in
        if (last?.version ?? 0) < shown.version { last = shown }
      }
      return shown.state
    }
  }

  /// The waiting actions.
  func pending(in subscription: Subscription<R.State>) -> [R.Action] {
    guard case .view(let view, let welcome) = look(at: subscription, nil) else { return [] }
    return view.actions.compactMap { actions.decode($0.payload, welcome.seed) }
  }

  private func look(at subscription: Subscription<R.State>, _ known: Shown?) -> Look {
    subscription.link.state.withLock { [number = subscription.number] link -> Look in
      guard let view = link.session.optimisticView(of: number), let welcome = link.session.welcome
      else { return .confirmed }
      if let known, known.version == view.version { return .same(known.state) }
      return .view(view, welcome)
    }
  }

  /// Reduce the actions of a view that were not reduced for the former one.
  private func show(
    _ view: OptimisticView, _ welcome: ServerMessage.Welcome, after known: Shown?
  ) -> Shown? {
    let cause = Cause(
      .client(
        ClientOrigin(
          connection: 0, pid: welcome.peer.pid, uid: welcome.peer.uid, gid: welcome.peer.gid,
          label: label, session: welcome.session ?? 0)))
    return Shown(view, after: known) { id, payload, state in
      // As the daemon will decode it.
      if let action = actions.decode(payload, welcome.seed) {
        prediction.reduce(
          action, into: &state, from: cause, number: id.rawValue, seed: welcome.seed)
      }
    }
  }
}
