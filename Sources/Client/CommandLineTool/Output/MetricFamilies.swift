import Values

/// A text of OpenMetrics 1.0 as an object: each family of metrics by its name, with its `type`,
/// `help` and `unit` if it has them, and its `samples`.
enum MetricFamilies {
  static func value(of text: String) -> Value {
    var families: [String: TrieMap<String, Value>] = [:]
    var samples: [String: [Value]] = [:]
    var current = ""
    for line in text.split(separator: "\n") {
      if line.hasPrefix("#") {
        let words = line.split(separator: " ", maxSplits: 3).map(String.init)
        guard words.count == 4 else { continue }
        current = words[2]
        families[current, default: [:]].updateValue(.text(words[3]), forKey: words[1].lowercased())
      } else if let sample = Sample(line) {
        if !sample.name.hasPrefix(current) || current.isEmpty { current = sample.name }
        families[current, default: [:]].updateValue([], forKey: "samples")
        samples[current, default: []].append(sample.value)
      }
    }
    for (name, samples) in samples {
      families[name]?.updateValue(.array(TreeArray(samples)), forKey: "samples")
    }
    var members = TrieMap<String, Value>()
    for (name, family) in families { members.updateValue(.object(family), forKey: name) }
    return .object(members)
  }

  /// A line `name{label="value",…} number`.
  private struct Sample {
    let name: String
    private var labels: TrieMap<String, Value> = [:]
    private let number: Value

    init?(_ line: Substring) {
      let end = line.firstIndex { $0 == "{" || $0 == " " } ?? line.endIndex
      name = String(line[..<end])
      var rest = line[end...]
      if rest.first == "{" {
        guard let labels = Self.labels(&rest) else { return nil }
        self.labels = labels
      }
      // A time may follow.
      guard let text = rest.split(separator: " ").first, let number = Double(text) else {
        return nil
      }
      self.number = Int64(text).map { .integer($0) } ?? .double(number)
    }

    var value: Value { ["labels": .object(labels), "name": .text(name), "value": number] }

    /// Take `{label="value",…}` from the beginning of a text; nil when it is not well-formed.
    private static func labels(_ text: inout Substring) -> TrieMap<String, Value>? {
      var labels = TrieMap<String, Value>()
      text.removeFirst()
      while let first = text.first, first != "}" {
        guard let equals = text.firstIndex(of: "=") else { return nil }
        let name = String(text[..<equals])
        text = text[text.index(after: equals)...]
        guard text.first == "\"", let value = quoted(&text) else { return nil }
        labels.updateValue(.text(value), forKey: name)
        if text.first == "," { text.removeFirst() }
      }
      guard text.first == "}" else { return nil }
      text.removeFirst()
      return labels
    }

    /// Take a text in quotation marks, in which a backslash escapes special characters.
    private static func quoted(_ text: inout Substring) -> String? {
      var result = ""
      text.removeFirst()
      while let character = text.popFirst() {
        switch character {
        case "\"": return result
        case "\\":
          guard let escaped = text.popFirst() else { return nil }
          result.append(escaped == "n" ? "\n" : escaped)
        default: result.append(character)
        }
      }
      return nil
    }
  }
}
