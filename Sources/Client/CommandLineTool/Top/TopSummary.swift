import Values

/// The lines above the lists: the daemon as a whole. Of each, what does not fit is left out from its
/// end, so the most important comes first.
struct TopSummary {
  struct Line {
    var text: String
    /// Whether it says that something is wrong.
    var isWarning = false
  }

  let model: TopModel
  let width: Int

  private var status: Value { model.look?.status ?? .null }

  private func number(_ name: PathKey) -> UInt64? { status.child(name)?.number }

  /// What the daemon is, and at the end of the line what is special now.
  func title(_ remark: String) -> String {
    var parts: [String] = ["lockstep top"]
    if model.look != nil {
      let name = model.look?.process?.name ?? "daemon"
      // A daemon of somebody's own may have no version.
      let words = [name, status.cell("version")].filter { !$0.isEmpty }
      parts = [words.joined(separator: " "), "pid \(status.cell("pid"))"]
      parts += [number("uptimeMs").map { "up \(TopText.time(milliseconds: $0))" } ?? ""]
      parts += [status.cell("socket")]
    }
    let left = " " + parts.filter { !$0.isEmpty }.joined(separator: "  ").escapingControls
    if remark.isEmpty { return left.filling(width) }
    let right = remark.cut(to: max(0, width - 2)) + " "
    return (left.filling(max(0, width - right.columns - 1)) + " " + right).filling(width)
  }

  var lines: [Line] { [actions, clients, durability, memory] }

  // MARK: Lines

  private var actions: Line {
    let rates = model.rates
    guard let total = number("actions") else {
      return line("Actions", [Self.hidden, "revision \(status.cell("revision"))"])
    }
    return line(
      "Actions",
      [
        "\(TopText.rate(rates.actions))/s",
        "rejected \(TopText.rate(rates.rejected))/s",
        "revisions \(TopText.rate(rates.revisions))/s",
        "now \((number("revision") ?? 0).grouped)",
        "since its start \(total.grouped), rejected \((number("rejected") ?? 0).grouped)",
      ])
  }

  private var clients: Line {
    guard let look = model.look, look.clients.contents != nil else {
      return line("Clients", [number("clients").map { $0.grouped } ?? Self.hidden])
    }
    // What the daemon's present turn has not sent to anybody yet is no client's lag.
    let least = model.clients.map(\.lagRevisions).min() ?? 0
    let lagging = model.clients.filter { $0.lagRevisions > least }
    let most = lagging.map(\.lagRevisions).max() ?? 0
    let stalled = model.clients.filter { $0.lagMs > 0 }.count
    let unsent = model.clients.reduce(0) { $0 + ($1.lagBytes ?? 0) }
    return line(
      "Clients",
      [
        "\(UInt64(model.clients.count).grouped) connected",
        lagging.isEmpty
          ? "none behind" : "\(lagging.count) behind by up to \(most.grouped) revisions",
        stalled == 0 ? "" : "\(stalled) stalled",
        "\(TopText.bytes(unsent)) unsent",
        "sent \(TopText.bytes(perSecond: model.rates.bytes))/s",
        "coalesced \(TopText.rate(model.rates.coalesced))/s",
        "snapshots \(TopText.rate(model.rates.snapshots))/s",
      ], isWarning: stalled > 0)
  }

  private var durability: Line {
    let kind = status.cell("durability")
    let journal = status.cell("journal")
    if kind == "none" { return line("Durable", ["nothing is kept (--state-dir)"]) }
    var parts = [kind, journal]
    if let durable = number("durableRevision"), let revision = number("revision") {
      let behind = revision > durable ? revision - durable : 0
      parts.append(behind == 0 ? "all on disk" : "\(behind.grouped) revisions not on disk")
    } else {
      parts.append("nothing on disk yet")
    }
    if let queue = number("journalQueueBytes") { parts.append("\(TopText.bytes(queue)) wait") }
    return line("Durable", parts, isWarning: !["healthy", "none"].contains(journal))
  }

  private var memory: Line {
    let metrics = model.look?.metrics.contents
    var parts: [String] = []
    if let process = model.look?.process {
      parts.append("\(TopText.bytes(process.residentBytes)) resident")
      parts.append("CPU \(TopText.percent(model.rates.processor))")
    }
    if let state = metrics?["lockstep_state_memory_bytes"] {
      parts.append("state \(TopText.bytes(state))")
    }
    if let history = number("historyBytes") { parts.append("history \(TopText.bytes(history))") }
    if let held = number("heldStates"), held > 0 { parts.append("held states \(held)") }
    if let state = metrics?["lockstep_state_bytes"] {
      parts.append("encoded \(TopText.bytes(state))")
    }
    return line("Memory", parts.isEmpty ? [Self.hidden] : parts)
  }

  static let hidden = "not shown to you by the daemon's policy"

  /// The parts that fit, whole, behind a name; of the first one what fits.
  private func line(_ name: String, _ parts: [String], isWarning: Bool = false) -> Line {
    var text = "\(name.filling(9))"
    var isFirst = true
    for part in parts.map(\.escapingControls) where !part.isEmpty {
      let next = text + (isFirst ? "" : "   ") + part
      if !isFirst, next.columns > width { break }
      text = next
      isFirst = false
    }
    return Line(text: text.filling(width), isWarning: isWarning)
  }
}
