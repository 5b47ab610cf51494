public import CBOR
import Values

// A policy as bytes: for recordings. The source of its rules is left out, except for a file's name
// and lines, which explanations quote.
extension Policy {
  public func encode(into encoder: inout CBOREncoder) {
    encoder.array(2)
    encoder.array(rules.count)
    for rule in rules { rule.encode(into: &encoder) }
    switch source {
    case .program: encoder.encodeNull()
    case .standard(let owner): encoder.encode(owner)
    case .file(let file, let lines):
      encoder.array(2)
      encoder.encode(file)
      encoder.array(lines.count)
      for line in lines { encoder.encode(line) }
    }
  }

  public init(from decoder: inout CBORDecoder) throws(CBORError) {
    try decoder.expectArray(2, "a policy")
    let rules = try decoder.list { decoder throws(CBORError) in try Rule(from: &decoder) }
    if decoder.nullIfNext() {
      self.init(rules)
    } else if try decoder.peekMajor() == .unsigned {
      self.init(rules, from: .standard(owner: try decoder.unsigned()))
    } else {
      try decoder.expectArray(2, "the source of a policy")
      let file = try decoder.text()
      let lines = try decoder.list { decoder throws(CBORError) in
        Int(clamping: try decoder.integer())
      }
      decoder.close()
      self.init(rules, from: .file(file, lines: lines))
    }
    decoder.close()
  }
}

extension Rule {
  fileprivate func encode(into encoder: inout CBOREncoder) {
    encoder.array(11)
    for ids in [users, groups] {
      encoder.array(ids.count)
      for id in ids.sorted() { encoder.encode(id) }
    }
    encoder.encode(isForEveryone)
    for answer in [mayConnect, mayAdminister] {
      if let answer { encoder.encode(answer) } else { encoder.encodeNull() }
    }
    for patterns in [read, denyRead, denyWrite] { encode(patterns, into: &encoder) }
    for patterns in [act, denyAct] {
      encoder.array(patterns.count)
      for pattern in patterns { encoder.encode(pattern.description) }
    }
    if let write { encode(write, into: &encoder) } else { encoder.encodeNull() }
  }

  private func encode(_ patterns: [PathPattern], into encoder: inout CBOREncoder) {
    encoder.array(patterns.count)
    for pattern in patterns {
      encoder.array(pattern.steps.count)
      for step in pattern.steps {
        switch step {
        case .any: encoder.encodeNull()
        case .key(let key): key.encode(into: &encoder)
        }
      }
    }
  }

  fileprivate init(from decoder: inout CBORDecoder) throws(CBORError) {
    try decoder.expectArray(11, "a rule")
    self.init(
      users: Set(try decoder.list { decoder throws(CBORError) in try decoder.unsigned() }),
      groups: Set(try decoder.list { decoder throws(CBORError) in try decoder.unsigned() }),
      isForEveryone: try decoder.bool(),
      mayConnect: decoder.nullIfNext() ? nil : try decoder.bool(),
      mayAdminister: decoder.nullIfNext() ? nil : try decoder.bool())
    read = try Self.paths(&decoder)
    denyRead = try Self.paths(&decoder)
    denyWrite = try Self.paths(&decoder)
    act = try Self.actions(&decoder)
    denyAct = try Self.actions(&decoder)
    write = decoder.nullIfNext() ? nil : try Self.paths(&decoder)
    decoder.close()
  }

  private static func paths(_ decoder: inout CBORDecoder) throws(CBORError) -> [PathPattern] {
    try decoder.list { decoder throws(CBORError) in
      PathPattern(
        try decoder.list { decoder throws(CBORError) in
          decoder.nullIfNext() ? .any : .key(try PathKey(from: &decoder))
        })
    }
  }

  private static func actions(_ decoder: inout CBORDecoder) throws(CBORError) -> [ActionPattern] {
    try decoder.list { decoder throws(CBORError) in
      let start = decoder.offset
      guard let pattern = ActionPattern(try decoder.text()) else {
        throw CBORError(.notAllowed("a pattern of actions that is none"), at: start)
      }
      return pattern
    }
  }
}
