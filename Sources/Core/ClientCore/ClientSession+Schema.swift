import CBOR
import Schemas
import Values
import Wire

// A client that was built with types of its own, or that shows the types of any daemon by their
// names, reads the daemon's schema at the welcome and whenever it changes. Mirrors keep their
// values until a snapshot by the new schema has arrived, because patches cannot add what an old
// translation left out.
extension ClientSession {
  /// Adopt the daemon's schema, and translate by it from now on. Returns whether mirrors must
  /// resubscribe. Throws the goodbye of peers whose schemas are incompatible.
  @discardableResult
  mutating func adopt(
    _ new: Schema, _ commands: inout [Command]
  ) throws(WireError) -> Bool {
    let isOther = schema?.fingerprint != new.fingerprint
    schema = new
    commands.append(.notify(.schema(new)))
    guard isOther else { return false }
    let wasTranslated = stateTranslation != nil
    do throws(SchemaMismatch) {
      try makeTranslations(new)
    } catch {
      throw WireError(.schema, error.description)
    }
    guard wasTranslated || stateTranslation != nil else { return false }
    for index in mirrors.indices {
      mirrors[index].translate(by: stateTranslation)
      mirrors[index].position = nil
    }
    return true
  }

  private mutating func makeTranslations(_ new: Schema) throws(SchemaMismatch) {
    stateTranslation = nil
    actionTranslation = nil
    switch configuration.schemaUse {
    case .ignore: return
    case .names: stateTranslation = try Translation(from: new, to: .names, root: .state).unlessIdle
    case .expected(let own):
      stateTranslation = try Translation(from: new, to: .schema(own), root: .state).unlessIdle
      actionTranslation = try Translation(from: own, to: .schema(new), root: .action).unlessIdle
    }
  }

  /// Renew all subscriptions.
  mutating func resubscribe(_ commands: inout [Command]) {
    for index in mirrors.indices {
      mirrors[index].disconnect()
      mirrors[index].isHealing = true
      commands.append(.send(Self.frame(.unsubscribe(subscription: mirrors[index].number))))
      commands.append(subscription(of: mirrors[index]))
    }
  }

  // MARK: Actions

  /// The payload of a pending action, translated to the daemon's schema, or `undefined`, which is
  /// never a valid action.
  mutating func translatedPayload(at index: Int) -> [UInt8] {
    pending[index].refusal = nil
    let payload = pending[index].payload
    guard let actionTranslation else { return payload }
    do throws(CBORError) {
      return try CBORDecoder.read(payload) { decoder throws(CBORError) in
        var encoder = CBOREncoder(reservingCapacity: payload.count)
        try actionTranslation.value(from: &decoder, into: &encoder)
        return encoder.bytes
      }
    } catch {
      pending[index].refusal = actionTranslation.refusal(for: error)
      return [0xf7]
    }
  }
}

extension Translation {
  /// The translation, or nil if it is the identity.
  fileprivate var unlessIdle: Translation? { isIdentity ? nil : self }

  /// The rejection of an action that cannot be translated.
  fileprivate func refusal(for error: CBORError) -> RejectionMessage {
    guard case .unknownCase(let number) = error.kind else {
      return RejectionMessage(
        code: Self.malformed, message: "malformed action: \(error)", path: nil)
    }
    let names = names(ofCase: number).joined(separator: " or ")
    return RejectionMessage(
      code: Self.unknownAction, message: "the daemon does not know \(names)", path: nil)
  }

  private static var malformed: UInt64 { 1 }
  private static var unknownAction: UInt64 { 2 }
}
