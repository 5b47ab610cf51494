public import CBOR
import Lockstep
import Records
import Wire

// Commands as CBOR: an array of the case's number and its values. They are encoded to be compared,
// and are never decoded.
extension Command {
  public func encode(into encoder: inout CBOREncoder) {
    func begin(_ number: UInt64, _ values: Int = 0) {
      encoder.array(1 + values)
      encoder.encode(number)
    }
    func begin(_ number: UInt64, _ id: ConnectionID, _ more: Int = 0) {
      begin(number, 1 + more)
      encoder.encode(id.rawValue)
    }
    switch self {
    case .send(let id, let frames):
      begin(0, id, 1)
      // Whether one was sent in two pieces is not compared: a recording may be done again without what
      // was foreseen when it was made.
      let frames = StreamFrames.joined(frames)
      encoder.array(frames.count)
      for frame in frames { encoder.encode(bytes: frame) }
    case .close(let id): begin(1, id)
    case .abort(let id): begin(2, id)
    case .pauseReading(let id): begin(3, id)
    case .resumeReading(let id): begin(4, id)
    case .effect(let order):
      begin(5, 2)
      switch order {
      case .start(let id):
        encoder.encode(0)
        encoder.encode(id.rawValue)
      case .cancel(let id):
        encoder.encode(1)
        encoder.encode(id.rawValue)
      case .cancelTasks(let name):
        encoder.encode(2)
        encoder.array(name.texts.count)
        for text in name.texts { encoder.encode(text) }
      }
    case .wake: begin(6)
    case .keep(let batch):
      begin(7, 1)
      batch.encode(into: &encoder)
    case .keepSnapshot(let heals):
      begin(8, 1)
      encoder.encode(heals)
    case .reopenJournal: begin(9)
    case .encodeSnapshot(let job):
      begin(10, 1)
      encoder.encode(job.rawValue)
    case .measureState: begin(11)
    case .measureMemory: begin(12)
    case .answer(let id, let query, let asked):
      begin(13, id, 2)
      encoder.encode(query)
      switch asked {
      case .reloadPolicy: encoder.encodeNull()
      case .metrics(let text): encoder.encode(text)
      case .parts(let request, let uid):
        // The last item was added later: without it the command is that of former recordings.
        encoder.array(request.revision == nil ? 5 : 6)
        encoder.encode(uid)
        request.path.encode(into: &encoder)
        encoder.encode(request.depth)
        encoder.encode(request.limit)
        request.after.encode(into: &encoder)
        if let revision = request.revision { encoder.encode(revision) }
      case .past(let request, let uid):
        encoder.array(4)
        encoder.encode(uid)
        request.path.encode(into: &encoder)
        switch request.subject {
        case .value(let revision):
          encoder.encodeNull()
          encoder.encode(revision)
        case .changes(let count, let before):
          encoder.encode(count)
          encoder.encode(before)
        case .change(let revision):
          encoder.encode(true)
          encoder.encode(revision)
        }
      }
    case .unwatch(let id): begin(14, id)
    case .decodeAction(let id): begin(16, id)
    case .makeCheckpoint: begin(17)
    case .computeDigest: begin(18)
    case .log(let line):
      begin(15, 3)
      encoder.encode(line.level.rawValue)
      encoder.encode(line.message)
      encoder.array(2 * line.fields.count)
      for field in line.fields {
        encoder.encode(field.name)
        encoder.encode(field.value)
      }
    }
  }
}

extension JournalBatch {
  fileprivate func encode(into encoder: inout CBOREncoder) {
    encoder.array(7)
    encoder.encode(number)
    encoder.array(rows.count)
    for row in rows { row.encode(into: &encoder) }
    encoder.encode(bytes: bytes)
    encoder.array(sessions.count)
    for session in sessions { session.encode(into: &encoder) }
    encoder.array(2 * forgotten.count)
    for token in forgotten {
      encoder.encode(token.high)
      encoder.encode(token.low)
    }
    encoder.encode(revision)
    encoder.encodeOptional(digest) { $0.encode($1.rawValue) }
  }
}

extension JournalRow {
  fileprivate func encode(into encoder: inout CBOREncoder) {
    encoder.array(9)
    encoder.encode(sequence)
    encoder.encode(time.nanoseconds)
    encoder.encode(cause.origin.description)
    encoder.encodeOptional(cause.client) { encoder, client in
      encoder.array(6)
      for number in [client.connection, client.session, client.pid, client.uid, client.gid] {
        encoder.encode(number)
      }
      encoder.encode(client.label)
    }
    encoder.encode(name)
    encoder.encodeOptional(action) { $0.encode($1) }
    encoder.encode(revision)
    encoder.encodeOptional(change) { encoder, change in
      encoder.array(2)
      encoder.encode(change.base)
      encoder.encode(change.patch)
    }
    encoder.encodeOptional(answer) { encoder, answer in
      encoder.array(4)
      encoder.encode(answer.session.high)
      encoder.encode(answer.session.low)
      encoder.encode(answer.number)
      var acknowledgement = CBOREncoder()
      ServerMessage.acknowledgement(
        Acknowledgement(
          first: answer.number, last: answer.number, revision: revision, answer.outcome)
      ).encode(into: &acknowledgement)
      encoder.encode(bytes: acknowledgement.bytes)
    }
  }
}

extension CBOREncoder {
  fileprivate mutating func encode(_ range: Range<Int>) {
    array(2)
    encode(range.lowerBound)
    encode(range.upperBound)
  }
}
