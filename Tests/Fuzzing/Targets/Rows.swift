import CBOR
import Values

/// Any bytes are an array of identified elements, or a patch of one, or an error, after which the array
/// is what it was. Rows and order agree always, and each position is found, whatever patches and edits
/// came before.
/// Input: the array, or how many rows it has at first; then steps: patches, edits, the end of a
/// transaction.
func fuzzRows(_ given: Input) {
  var input = given
  guard var rows = firstRows(&input) else { return }
  requireSound(rows, "the decoded rows")
  var start = rows
  steps: for _ in 0..<64 where !input.isEmpty {
    let step = input.byte()
    switch step % 8 {
    case 0, 1:
      guard let patch = (input.decode { [UInt8](try $0.rawItem()) }) else { break steps }
      settle(&rows, from: &start)
      patchRows(&rows, by: patch)
      start = rows
    case 2: settle(&rows, from: &start)
    case 3:
      rows.rollBack()
      require(rows.isSame(as: start), "the edits of a transaction can be undone")
    default: edit(&rows, step >> 3, input.byte(), input.byte())
    }
    // Of many rows, every edit would be a look-up of each.
    if rows.count < 64 { requireSound(rows, "the rows after step \(step % 8)") }
  }
  requireSound(rows, "the rows after the steps")
  settle(&rows, from: &start)
}

private typealias Rows = SyncIdentifiedArray<Row>

/// A value whose field `id` is its id, so that a patch can change the id.
private struct Row: Synchronizable, Identifiable {
  var value: Value
  var id: String {
    guard case .object(let fields) = value, case .text(let id)? = fields["id"] else { return "" }
    return id
  }

  init(_ id: String) { value = .object(["id": .text(id), "list": [1, 2]]) }

  init(from decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    value = try Value(from: &decoder, seed: seed)
  }
  func encode(into encoder: inout CBOREncoder) { value.encode(into: &encoder) }
  func isSame(as other: Row) -> Bool { value.isSame(as: other.value) }
  func encodeDifference(from old: Row, into encoder: inout CBOREncoder) -> Bool {
    value.encodeDifference(from: old.value, into: &encoder)
  }
  mutating func apply(patch decoder: inout CBORDecoder, seed: HashSeed) throws(CBORError) {
    try value.apply(patch: &decoder, seed: seed)
  }
  func digest(seed: HashSeed) -> UInt64 { value.digest(seed: seed) }
  mutating func adopt(seed: HashSeed) { value.adopt(seed: seed) }
  static func schemaKind(in schema: inout SchemaBuilder) -> Schema.Kind {
    Value.schemaKind(in: &schema)
  }
}

private func firstRows(_ input: inout Input) -> Rows? {
  if let rows = (input.decode { try Rows(from: &$0, seed: testSeed) }) { return rows }
  var rows = Rows(uniqueElements: (0..<Int(input.byte())).map { Row("\($0)") })
  rows.adopt(seed: testSeed)
  return rows
}

private func patchRows(_ rows: inout Rows, by patch: [UInt8]) {
  let before = rows
  if apply(patch, to: &rows) != nil {
    require(rows.isSame(as: before), "a patch that does not apply leaves the rows as they were")
  }
  requireSound(before, "the rows that were not patched")
  rows.adopt(seed: testSeed)
  requireLaw(from: before, to: rows)
}

/// End a transaction, of which the patch is the difference.
private func settle(_ rows: inout Rows, from start: inout Rows) {
  var encoder = CBOREncoder()
  let isChanged = rows.settle(into: &encoder)
  require(isChanged == !rows.isSame(as: start), "rows know whether they changed")
  var difference = CBOREncoder()
  _ = rows.encodeDifference(from: start, into: &difference)
  require(encoder.bytes == difference.bytes, "what rows note is the difference")
  requireLaw(from: start, to: rows)
  start = rows
}

private func edit(_ rows: inout Rows, _ kind: UInt8, _ first: UInt8, _ second: UInt8) {
  let id = "\(first)"
  let position = Int(second) % (rows.count + 1)
  switch kind % 8 {
  case 0: rows.append(Row(id))
  case 1: rows.insert(Row(id), at: position)
  case 2: rows.remove(id: id)
  case 3: if position < rows.count { rows.move(id: id, to: position) }
  case 4: rows[id: id]?.value = .object(["id": .text(id), "n": .integer(Int64(second))])
  case 5: if !rows.isEmpty { rows.swapAt(Int(first) % rows.count, Int(second) % rows.count) }
  case 6: rows.sort { $0.id < $1.id }
  default: rows.removeAll { $0.id.utf8.count == Int(first % 4) }
  }
}

/// Requires that rows and order agree, and that both survive a round trip.
private func requireSound(_ rows: Rows, _ what: @autoclosure () -> String) {
  let elements = Array(rows)
  require(
    rows.count == elements.count && rows.ids.count == elements.count
      && rows.rows.count == elements.count, "\(what()): a row for each id")
  for (position, element) in elements.enumerated() {
    let id = rows.ids[position]
    require(String.isSame(id, element.id), "\(what()): the id of the row at \(position)")
    require(rows.index(id: id) == position, "\(what()): the position of \(id)")
    require(rows[id: id]?.isSame(as: element) == true, "\(what()): the row \(id)")
  }
  let bytes = encoded { rows.encode(into: &$0) }
  do throws(CBORError) {
    let again = try CBORDecoder.read(bytes, depth: ampleDepth) { decoder throws(CBORError) in
      try Rows(from: &decoder, seed: testSeed)
    }
    require(again.isSame(as: rows), "\(what()): the same decoded")
    require(encoded { again.encode(into: &$0) } == bytes, "\(what()): the same bytes decoded")
    require(
      again.digest(seed: testSeed) == rows.digest(seed: testSeed), "\(what()): the same digest")
  } catch {
    fatalError("Broken: \(what()): what was encoded decodes: \(error) in \(hex(bytes))")
  }
}

/// Requires that the difference makes one of the other.
private func requireLaw(from old: Rows, to new: Rows) {
  var encoder = CBOREncoder()
  guard new.encodeDifference(from: old, into: &encoder) else {
    require(
      old.isSame(as: new) && encoder.bytes.isEmpty, "no difference between the same rows only")
    return
  }
  var patched = old
  if let error = apply(encoder.bytes, to: &patched) {
    fatalError("Broken: our own patch of rows applies: \(error), \(hex(encoder.bytes))")
  }
  require(patched.isSame(as: new), "the difference makes some rows of others")
  requireSound(patched, "the rows after their difference")
}
