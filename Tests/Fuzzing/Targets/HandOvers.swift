import CBOR
import DaemonCore
import Documents
import Lockstep
import Values
import Wire

/// Bytes from a former process are refused, or a server continues from them with the state, the
/// sessions and the connections in them; and that server's own hand-over can be restored.
/// Input: a byte that selects what surrounds the bytes (nothing, a seal, or a seal and the schema),
/// then the bytes.
func fuzzHandOver(_ given: Input) {
  var input = given
  let bytes: [UInt8] =
    switch input.byte() % 3 {
    case 0: input.bytes
    case 1: HandOver<Document>.sealed(input.bytes)
    default: HandOver<Document>.sealed(body(behindSchema: input.bytes))
    }
  guard let handed = try? HandOver<Document>(bytes, schema: DocumentFeature.schema) else { return }
  var server = successor(of: handed)
  let image = server.handOver
  do throws(HandOverFailure) {
    let again = try HandOver<Document>(
      image.encoded(schema: DocumentFeature.schema), schema: DocumentFeature.schema)
    require(again.kept.state.isSame(as: handed.kept.state), "the state goes on")
    require(again.kept.sessions == image.kept.sessions, "the sessions go on")
    require(again.connections == image.connections, "the connections go on")
    server = successor(of: again)
    require(server.revision == handed.kept.revision, "the revision goes on")
  } catch {
    fatalError("Broken: what a server hands over can be taken up: \(error)")
  }
}

private func body(behindSchema rest: [UInt8]) -> [UInt8] {
  encoded {
    $0.array(6)
    DocumentFeature.schema.encode(into: &$0)
  } + rest
}

/// The server of the next process, after its first turn.
private func successor(of handed: HandOver<Document>) -> Server<DocumentFeature> {
  let now = Instant(nanoseconds: 1)
  var server = Server(restoring: handed.next, reducer: DocumentFeature(), at: now)
  var commands: [Command] = []
  let scopes = handed.connections.flatMap { $0.subscriptions.map(\.scope) }
  server.handle(.scopesReserved(scopes), at: now, into: &commands)
  for connection in handed.connections {
    server.handle(
      .inherited(connection, isTranslated: handed.isTranslated), at: now, into: &commands)
  }
  server.handle(.turnEnded, at: now, into: &commands)
  return server
}
