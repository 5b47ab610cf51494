import Lockstep
import Values

/// How the actions of a store travel: inside those of the features around it.
struct ActionCoding<Action: SynchronizableAction>: Sendable {
  let encode: @Sendable (Action) -> [UInt8]
  /// The action that a payload was made of, on this connection; nil if that is not one of the store's.
  let decode: @Sendable (_ payload: [UInt8], _ seed: HashSeed) -> Action?

  private init(
    encode: @escaping @Sendable (Action) -> [UInt8],
    decode: @escaping @Sendable ([UInt8], HashSeed) -> Action?
  ) {
    self.encode = encode
    self.decode = decode
  }

  /// That of a feature with nothing around it.
  init() {
    self.init(
      encode: { Connection.payload($0) }, decode: { Connection.action($0, seed: $1) })
  }

  /// That of a part of the feature.
  func part<PartAction: SynchronizableAction>(
    _ path: CasePath<Action, PartAction>
  ) -> ActionCoding<PartAction> {
    ActionCoding<PartAction>(
      encode: { [encode] in encode(path.embed($0)) },
      decode: { [decode] in decode($0, $1).flatMap(path.extract) })
  }
}
