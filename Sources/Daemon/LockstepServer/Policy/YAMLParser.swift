import CYAML

// libyaml turns bytes into events; this makes a tree of them. Features that a policy does not need
// are refused, so that a file means what it seems to: anchors and aliases (which also make small
// files large), tags, keys that are not text or come twice, a second document.

/// Reads one YAML document.
struct YAMLParser: ~Copyable {
  /// More than any policy needs.
  static let depthLimit = 16

  // The parser refers to itself, so it must stay where it is.
  private let parser: UnsafeMutablePointer<yaml_parser_t>
  private let bytes: UnsafeBufferPointer<UInt8>

  /// Parse the bytes as one document. O(bytes).
  static func document(_ bytes: [UInt8]) throws(YAMLError) -> YAMLNode {
    try refuseMark(bytes)
    let result: Result<YAMLNode, YAMLError> = bytes.withUnsafeBufferPointer { buffer in
      do throws(YAMLError) {
        var parser = try YAMLParser(buffer)
        return .success(try parser.document())
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  /// Refuse a byte order mark, which editors of other systems put in front, invisibly.
  private static func refuseMark(_ bytes: [UInt8]) throws(YAMLError) {
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) {
      throw YAMLError(
        line: 1,
        message: "the file begins with a byte order mark (EF BB BF): save it as UTF-8 without one")
    }
    if bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]) {
      throw YAMLError(
        line: 1,
        message: "the file begins with a byte order mark of UTF-16: save it as UTF-8 without one")
    }
  }

  private init(_ bytes: UnsafeBufferPointer<UInt8>) throws(YAMLError) {
    self.bytes = bytes
    parser = .allocate(capacity: 1)
    guard yaml_parser_initialize(parser) == 1 else {
      parser.deallocate()
      throw YAMLError(line: 1, message: "there is no memory to read it")
    }
    // Other encodings could hide the meaning of the file from a person who looks at it.
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
    yaml_parser_set_input_string(parser, bytes.baseAddress, bytes.count)
  }

  deinit {
    yaml_parser_delete(parser)
    parser.deallocate()
  }

  private mutating func document() throws(YAMLError) -> YAMLNode {
    _ = try next()
    guard case .documentStart = try next().kind else {
      throw YAMLError(line: 1, message: "the file is empty")
    }
    let root = try node(try next(), depth: 0)
    _ = try next()
    let event = try next()
    guard case .streamEnd = event.kind else {
      throw YAMLError(line: event.line, message: "a second document begins; write one")
    }
    return root
  }

  private mutating func node(_ event: Event, depth: Int) throws(YAMLError) -> YAMLNode {
    guard depth < Self.depthLimit else {
      throw YAMLError(
        line: event.line, message: "it nests deeper than \(Self.depthLimit) levels")
    }
    switch event.kind {
    case .scalar(let text): return YAMLNode(content: .scalar(text), line: event.line)
    case .sequenceStart:
      var nodes: [YAMLNode] = []
      while true {
        let event = try next()
        if case .sequenceEnd = event.kind { break }
        nodes.append(try node(event, depth: depth + 1))
      }
      return YAMLNode(content: .sequence(nodes), line: event.line)
    case .mappingStart:
      return YAMLNode(content: .mapping(try members(depth: depth)), line: event.line)
    case .streamStart, .streamEnd, .documentStart, .documentEnd, .sequenceEnd, .mappingEnd:
      throw YAMLError(line: event.line, message: "a value is missing")
    }
  }

  private mutating func members(depth: Int) throws(YAMLError) -> [YAMLNode.Member] {
    var members: [YAMLNode.Member] = []
    var lines: [String: Int] = [:]
    while true {
      let event = try next()
      if case .mappingEnd = event.kind { return members }
      guard case .scalar(let key) = event.kind else {
        throw YAMLError(line: event.line, message: "a key must be a word, not a list or mapping")
      }
      if let first = lines.updateValue(event.line, forKey: key) {
        throw YAMLError(
          line: event.line,
          message: "the key \(key.quoted) is here a second time; the first is on line \(first)")
      }
      let value = try node(try next(), depth: depth + 1)
      members.append(.init(key: key, line: event.line, value: value))
    }
  }

  // MARK: Events

  private struct Event {
    enum Kind {
      case streamStart, streamEnd, documentStart, documentEnd
      case scalar(String)
      case sequenceStart, sequenceEnd, mappingStart, mappingEnd
    }

    let kind: Kind
    let line: Int
  }

  private mutating func next() throws(YAMLError) -> Event {
    var event = yaml_event_t()
    guard yaml_parser_parse(parser, &event) == 1 else { throw failure }
    defer { yaml_event_delete(&event) }
    let line = Int(event.start_mark.line) + 1
    let data = event.data
    switch event.type {
    case YAML_STREAM_START_EVENT: return Event(kind: .streamStart, line: line)
    case YAML_DOCUMENT_START_EVENT: return Event(kind: .documentStart, line: line)
    case YAML_DOCUMENT_END_EVENT: return Event(kind: .documentEnd, line: line)
    case YAML_SCALAR_EVENT:
      let scalar = data.scalar
      try refuse(anchor: scalar.anchor, tag: scalar.tag, line)
      let text = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
      return Event(kind: .scalar(String(decoding: text, as: UTF8.self)), line: line)
    case YAML_SEQUENCE_START_EVENT:
      try refuse(anchor: data.sequence_start.anchor, tag: data.sequence_start.tag, line)
      return Event(kind: .sequenceStart, line: line)
    case YAML_SEQUENCE_END_EVENT: return Event(kind: .sequenceEnd, line: line)
    case YAML_MAPPING_START_EVENT:
      try refuse(anchor: data.mapping_start.anchor, tag: data.mapping_start.tag, line)
      return Event(kind: .mappingStart, line: line)
    case YAML_MAPPING_END_EVENT: return Event(kind: .mappingEnd, line: line)
    case YAML_ALIAS_EVENT: throw YAMLError(line: line, message: Self.aliasMessage)
    // After the end of the stream, libyaml has no events.
    default: return Event(kind: .streamEnd, line: line)
    }
  }

  private static var aliasMessage: String {
    "aliases are not for policies; a text that begins with a star must be in quotes: \"*\""
  }

  private func refuse(
    anchor: UnsafePointer<UInt8>?, tag: UnsafePointer<UInt8>?, _ line: Int
  ) throws(YAMLError) {
    if anchor != nil {
      throw YAMLError(
        line: line,
        message: "anchors are not for policies; a text that begins with & must be in quotes")
    }
    if tag != nil {
      throw YAMLError(
        line: line,
        message: "tags are not for policies; a text that begins with ! must be in quotes")
    }
  }

  /// The error at which libyaml stopped.
  private var failure: YAMLError {
    let parser = parser.pointee
    let problem = parser.problem.map { String(cString: $0) } ?? "no reason is known"
    if parser.error == YAML_READER_ERROR {
      let lines = bytes.prefix(Int(parser.problem_offset)).count { $0 == UInt8(ascii: "\n") }
      return YAMLError(line: lines + 1, message: "it is not YAML: \(problem)")
    }
    let line = Int(parser.problem_mark.line) + 1
    let context = parser.context.map { String(cString: $0) } ?? ""
    if context == "while scanning an alias" {
      return YAMLError(line: line, message: Self.aliasMessage)
    }
    return YAMLError(
      line: line,
      message: "it is not YAML: \(problem)\(context.isEmpty ? "" : ", \(context)")")
  }
}

extension String {
  /// The text in quotes, its beginning if it is long, without control characters.
  var quoted: String {
    var text = ""
    for scalar in unicodeScalars.prefix(80) {
      text += scalar.properties.generalCategory == .control ? "\u{fffd}" : String(scalar)
    }
    return "\"\(text)\(unicodeScalars.count > 80 ? "…" : "")\""
  }
}
