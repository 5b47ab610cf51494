extension SyncIdentifiedArray {
  // MARK: Reading

  /// The label of the row with an id, or nil when there is none. O(log n), and no copy of the row.
  @inlinable
  func label(of id: ID) -> UInt64? {
    withExtendedLifetime(content.map.root) {
      content.map.find(id, id.hash(seed: content.map.seed)).map { Ref.value($0).pointee.label }
    }
  }

  @inlinable
  func label(at index: Int) -> UInt64 {
    guard let label = label(of: order[index]) else {
      preconditionFailure("The order names no row: \(order[index]).")
    }
    return label
  }

  /// The position of an id that is in the order, by its label. Interpolates between the labels that
  /// are known, a few times in turn with halving; labels that were spread evenly need one step.
  @inlinable
  func index(of id: ID, label: UInt64) -> Int {
    // The position is in low..<high; the labels beside this range are known once it was narrowed.
    var (low, high) = (0, count)
    var (below, above) = (OrderLabel.none, OrderLabel.pending)
    var step = 0
    while high - low > Self.scanLimit {
      let probe =
        if below == OrderLabel.none { low } else if above == OrderLabel.pending {
          high - 1
        } else if step > 6 || step % 2 == 1 { low + (high - low) / 2 } else {
          Self.interpolated(label, low..<high, below, above)
        }
      let other = order.storage[probe]
      if ID.isSame(other, id) { return probe }
      let otherLabel = self.label(at: probe)
      if otherLabel < label {
        (low, below) = (probe + 1, otherLabel)
      } else {
        (high, above) = (probe, otherLabel)
      }
      step += 1
    }
    guard let index = order.storage.firstIndex(in: low..<high, where: { ID.isSame($0, id) }) else {
      preconditionFailure("The order does not name the row \(id).")
    }
    return index
  }

  /// Where in a range a label would be, if labels rose evenly between those beside the range.
  @inlinable
  static func interpolated(
    _ label: UInt64, _ range: Range<Int>, _ below: UInt64, _ above: UInt64
  ) -> Int {
    let share = Double(label &- below) / Double(above &- below)
    let index = range.lowerBound - 1 + Int((share * Double(range.count + 1)).rounded())
    return Swift.min(Swift.max(index, range.lowerBound), range.upperBound - 1)
  }

  /// In a range of at most so many positions, ids are compared one by one, without looking up rows.
  @inlinable static var scanLimit: Int { 64 }

  // MARK: Writing

  @inlinable
  mutating func setLabel(of id: ID, _ label: UInt64) {
    content.modifyValue(forKey: id) { $0.label = label }
  }

  /// Set the labels of the rows at some positions. O(their number · log n).
  @inlinable
  mutating func setLabels(of run: Range<Int>, from start: UInt64, by step: UInt64) {
    var label = start
    for index in run {
      setLabel(of: order[index], label)
      label &+= step
    }
  }

  /// Give labels to the pending rows at some positions. The rows before them have theirs, and so
  /// has the row behind them.
  @inlinable
  mutating func label(_ run: Range<Int>) {
    // Spreading the labels for the run before this one may have labelled this one.
    if run.isEmpty || label(at: run.lowerBound) != OrderLabel.pending { return }
    let labels = OrderLabel.run(
      of: run.count, between: run.lowerBound == 0 ? nil : label(at: run.lowerBound - 1),
      and: run.upperBound == count ? nil : label(at: run.upperBound))
    if let labels {
      setLabels(of: run, from: labels.start, by: labels.step)
    } else {
      relabel(around: run)
    }
  }

  /// Give labels to the pending rows at some positions, for which there is no room, by spreading
  /// those of the rows around them. O(log n) labels for each row, amortised.
  @inlinable @inline(never)
  mutating func relabel(around run: Range<Int>) {
    var (low, high) = (run.lowerBound, run.upperBound)
    var range = LabelRange(around: label(at: low > 0 ? low - 1 : high))
    repeat {
      while low > 0, label(at: low - 1) >= range.first { low -= 1 }
      while high < count {
        let label = label(at: high)
        if label > range.last && label != OrderLabel.pending { break }
        high += 1
      }
      if Double(high - low) <= range.capacity {
        let step = range.size / UInt64(high - low)
        return setLabels(of: low..<high, from: range.first &+ step / 2, by: step)
      }
    } while range.grow()
    let step = OrderLabel.pending / (UInt64(count) + 1)
    setLabels(of: 0..<count, from: step, by: step)
  }
}
