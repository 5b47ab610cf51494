import Access
import CBOR
public import Lockstep
import Values
import Wire

/// A large action to be decoded beside the loop (`Server.action(for:)`).
public struct ActionJob<R: Reducer>: Sendable {
  public typealias Action = R.Action

  /// Bytes as a connection has received them, and where among them the message is.
  let bytes: [UInt8]
  let item: Range<Int>
  /// What it was decoded to, if that is to be worked out again.
  let known: DecodedAction<Action>?
  let budget: MemoryBudget
  let memoryLimit: Int
  let seed: HashSeed
  /// Those of its sender: without them it is not foreseen, because it will be rejected.
  let rights: Rights?
  /// Nil if the action is not to be foreseen.
  let foreseen: Ground?

  /// What the action will be performed on, unless it changes until then.
  struct Ground: Sendable {
    let reducer: R
    let state: R.State
    let scopes: ScopeViews
  }

  /// The most memory that it takes to decode so many bytes.
  static func memory(of count: Int, limit: Int) -> Int {
    let most = MemoryEstimate.mostPerByte
    return count < limit / most ? count * most : limit
  }

  /// Decode it, and foresee what it does. O(its bytes, what it does, and the patterns of the policy for
  /// each of its paths).
  public func decoded() -> DecodedAction<Action> {
    if let known, case .action(let action) = known.outcome {
      return examined(action, cost: known.cost, after: known)
    }
    return bytes.withUnsafeBytes { bytes in
      var decoder = CBORDecoder(UnsafeRawBufferPointer(rebasing: bytes[item]))
      do throws(CBORError) {
        // The loop has read both heads: they are as they should be.
        guard let head = try? MessageHead(from: &decoder) else {
          return DecodedAction(outcome: .malformed(CBORError(.notAllowed("a message"), at: 0)))
        }
        _ = try ActionHead(from: &decoder)
        let cost = budget.scarceCost(ofRestOf: decoder)
        var spare: Action?
        do throws(ReadFailure) {
          let action = try ActionJob.decode(
            &decoder, head, cost, budget, limit: memoryLimit, seed: seed, reusing: &spare)
          return examined(action, cost: cost)
        } catch {
          switch error {
          case .malformed(let error): return DecodedAction(outcome: .malformed(error))
          case .rejected(let failure):
            return DecodedAction(outcome: .failure(failure), cost: cost)
          }
        }
      } catch {
        return DecodedAction(outcome: .malformed(error))
      }
    }
  }

  /// An action with what is to be known before it is performed: a right that is missing, or what it does.
  private func examined(
    _ action: Action, cost: Int?, after former: DecodedAction<Action>? = nil
  ) -> DecodedAction<Action> {
    var decoded = DecodedAction(outcome: .action(action), cost: cost)
    if let former { decoded.tries = former.tries + 1 }
    guard let ground = foreseen else { return decoded }
    decoded.missingRight = rights?.missingRight(for: action, in: ground.state)
    if decoded.missingRight != nil { return decoded }
    let foresight =
      if let known = former?.foreseen?.foresight {
        ground.reducer.foresee(action, in: ground.state, renewing: known)
      } else {
        ground.reducer.foresee(action, in: ground.state)
      }
    guard let foresight else { return decoded }
    var part: Foresight?
    if let rights, LargeActions<Action>.isReserved(after: decoded.tries) {
      part = ground.reducer.part(of: foresight) { rights.mayWrite(ground.state.reach(of: $0)) }
    }
    decoded.foreseen = ForeseenPatch(foresight, ground.scopes, for: rights, reserving: part)
    return decoded
  }

  /// Decode the rest of a message after the head of an action. An item that is no action is
  /// skipped, if it is CBOR at all: only the action is rejected. `cost` is the memory that it may
  /// take, if that is scarce, and `spare` an action whose memory may be used.
  ///
  /// It returns the action and throws what else there may be, because in generic code an action that is bound
  /// by a pattern is a copy.
  @inline(__always)
  static func decode(
    _ decoder: inout CBORDecoder, _ head: MessageHead, _ cost: Int?,
    _ budget: borrowing MemoryBudget, limit: Int, seed: HashSeed, reusing spare: inout Action?
  ) throws(ReadFailure) -> Action {
    if let cost, let refusal = budget.refusal(ofBytes: decoder.remaining, cost: cost) {
      try finish(&decoder, head, skipping: true)
      throw .rejected(.noMemory(refusal))
    }
    if decoder.remaining > limit / MemoryEstimate.mostPerByte {
      try checkMemory(of: decoder, limit: limit)
    }
    var attempt = decoder
    let action: Action
    do throws(CBORError) {
      action = try Action(from: &attempt, seed: seed, reusing: &spare)
    } catch {
      try finish(&decoder, head, skipping: true)
      throw .rejected(.undecodable(error))
    }
    decoder = attempt
    try finish(&decoder, head, skipping: false)
    return action
  }

  /// Finish the message, which must end with the action: skip that first, if it was not decoded.
  private static func finish(
    _ decoder: inout CBORDecoder, _ head: MessageHead, skipping skips: Bool
  ) throws(ReadFailure) {
    do throws(CBORError) {
      if skips { try decoder.skip() }
      try head.finish(&decoder)
      guard decoder.isAtEnd else {
        throw CBORError(.trailingBytes(decoder.remaining), at: decoder.offset)
      }
    } catch {
      throw .malformed(error)
    }
  }

  /// Reject an action whose values would take too much memory, so that it is not decoded. Bytes after the
  /// point where that is known are not examined.
  private static func checkMemory(of decoder: CBORDecoder, limit: Int) throws(ReadFailure) {
    var decoder = decoder
    var estimate = MemoryEstimate(limit: limit)
    do throws(CBORError) {
      try estimate.addValue(&decoder)
    } catch {
      throw .malformed(error)
    }
    if estimate.isExceeded { throw .rejected(.tooLarge(limit: limit)) }
  }
}

/// What the bytes of a large action were.
public struct DecodedAction<Action: Sendable>: Sendable {
  enum Outcome: Sendable {
    case action(Action)
    case failure(ActionFailure)
    /// The message is no CBOR.
    case malformed(CBORError)
    /// It was decoded, says a recording: to do that again is to decode it again.
    case recorded
  }

  let outcome: Outcome
  /// About how much memory it takes to perform it, if memory was scarce.
  var cost: Int?
  /// A right that its sender lacks.
  var missingRight: MissingRight?
  /// What it does, if that could be foreseen.
  var foreseen: ForeseenPatch?
  /// How often it has been worked out what it does.
  var tries = 1

  /// This action, which others have overtaken too often.
  var overtaken: DecodedAction { DecodedAction(outcome: .failure(.overtaken), cost: cost) }

  package static var recorded: DecodedAction { DecodedAction(outcome: .recorded) }

  package var isForeseen: Bool { foreseen != nil }
  package var isDenied: Bool { missingRight != nil }

  /// The action. Throws if there is none.
  func get() throws(ReadFailure) -> Action {
    switch outcome {
    case .action(let action): return action
    case .failure(let failure): throw .rejected(failure)
    case .malformed(let error): throw .malformed(error)
    case .recorded:
      throw .malformed(CBORError(.notAllowed("an action that was not decoded again"), at: 0))
    }
  }
}

/// A patch that was worked out before its action, or its jump, is performed.
final class ForeseenPatch: Sendable {
  let foresight: Foresight
  let weight: PatchWeight
  /// How it changes the scopes that were there.
  let scopes: ForeseenScopes
  /// The rights with which the action may be performed. As long as what was foreseen holds, its paths
  /// lead where they led.
  let rights: Rights?
  /// What of it is reserved if others change once more what the action touches; nil if that is all of it.
  /// To have others wait takes the right to write where they write.
  let reservedPart: Foresight?

  /// O(the patch, and what is visible of it in each scope).
  init(
    _ foresight: Foresight, _ views: ScopeViews?, for rights: Rights? = nil,
    reserving part: Foresight? = nil
  ) {
    self.foresight = foresight
    self.rights = rights
    reservedPart = part
    weight = PatchWeight(of: foresight.patch)
    scopes = views.map { ForeseenScopes($0, of: foresight.patch) } ?? ForeseenScopes()
  }

  /// Whether a patch is this one: the same bytes in the same memory. O(1).
  func isPatch(_ patch: [UInt8]) -> Bool {
    patch.withUnsafeBytes { patch in
      foresight.patch.withUnsafeBytes {
        $0.baseAddress == patch.baseAddress && $0.count == patch.count
      }
    }
  }
}

/// Why a message gives no action.
enum ReadFailure: Error {
  /// It is no message.
  case malformed(CBORError)
  /// Only its action is rejected.
  case rejected(ActionFailure)
}

/// The reason that an action message has no usable action.
enum ActionFailure: Equatable {
  case undecodable(CBORError)
  /// The decoded action would take more memory than this limit.
  case tooLarge(limit: Int)
  /// There is not enough memory to decode it now.
  case noMemory(Rejection)
  /// Others changed what it touches each time that it was worked out, the last time where that is not
  /// reserved.
  case overtaken

  var rejection: Rejection {
    switch self {
    case .undecodable(let error): Rejection(error)
    case .noMemory(let rejection): rejection
    case .overtaken:
      Rejection(
        .refused,
        "others changed what the action reads each time that it was worked out, and do not wait for it where "
          + "you may not write: try again")
    case .tooLarge(let limit):
      Rejection(
        .limit,
        "the values of the action would take more memory than actionMemoryBytes, which is \(limit)")
    }
  }
}
