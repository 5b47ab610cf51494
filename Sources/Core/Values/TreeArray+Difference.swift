public import CBOR

// Theory: two arrays of one lineage share the nodes that neither has changed. Both trees are walked
// from the top, level by level. Nodes that are in both trees are anchors, and the nodes between
// anchors are expanded, so the walk visits only the paths to the differences. What remains are
// windows of a few elements, which are compared one by one.
//
// In a window of n old and m new elements, the shortest script of removals and insertions is
// searched for, up to a limit on its length. Removed and inserted elements at one position are
// paired and become edits; the rest is a splice. If the limit is exceeded, elements are paired by
// position.

extension TreeArray {
  /// Append `[splices, edits]`. O(changes · log n) for arrays of one lineage, else O(n) at best.
  @inlinable
  public func encodeDifference(from old: TreeArray, into encoder: inout CBOREncoder) -> Bool {
    if root === old.root { return false }
    var difference = TreeArrayDifference<Element>()
    switch (old.root, root) {
    case (let old?, let new?): difference.align(old, new)
    case (let old?, nil): difference.remove(old.count)
    case (nil, let new?): difference.insert([new])
    case (nil, nil): break
    }
    return difference.finish(&encoder)
  }
}

/// Walks two trees and writes their differences.
@usableFromInline
struct TreeArrayDifference<Element: Synchronizable> {
  @usableFromInline typealias Node = TreeArrayNode<Element>
  @usableFromInline typealias Nodes = ContiguousArray<TreeArrayNode<Element>>
  @usableFromInline typealias Elements = ContiguousArray<Element>

  /// The final index that the walk has reached.
  @usableFromInline var position = 0
  @usableFromInline var splices = CBOREncoder()
  @usableFromInline var spliceCount = 0
  @usableFromInline var edits = CBOREncoder()
  @usableFromInline var editCount = 0

  @inlinable
  init() {}

  @inlinable
  func finish(_ encoder: inout CBOREncoder) -> Bool {
    if spliceCount == 0 && editCount == 0 { return false }
    encoder.array(2)
    encoder.array(3 * spliceCount)
    encoder.raw(splices.bytes)
    encoder.map(editCount)
    encoder.raw(edits.bytes)
    return true
  }

  // MARK: Nodes

  @inlinable
  mutating func align(_ old: Node, _ new: Node) {
    if old === new {
      position += new.count
    } else if old.height != new.height {
      align([old], [new])
    } else if old.height == 0 {
      align(old.elements, new.elements)
    } else {
      alignChildren(old, new)
    }
  }

  /// Align two branches of one height, without allocating where one child differs.
  @inlinable
  mutating func alignChildren(_ old: Node, _ new: Node) {
    let (olds, news) = (old.children.count, new.children.count)
    let most = Swift.min(olds, news)
    var head = 0
    while head < most && old.children[head].node === new.children[head].node { head += 1 }
    var tail = 0
    while tail < most - head
      && old.children[olds - 1 - tail].node === new.children[news - 1 - tail].node
    { tail += 1 }
    position += new.start(of: head)
    let behind = new.count - new.start(of: news - tail)
    if olds - tail - head == 1 && news - tail - head == 1 {
      align(old.children[head].node, new.children[head].node)
    } else {
      align(
        Nodes(old.children[head..<olds - tail].lazy.map { $0.node }),
        Nodes(new.children[head..<news - tail].lazy.map { $0.node }))
    }
    position += behind
  }

  /// Align two sequences of neighbours, each of one height.
  @inlinable
  mutating func align(_ old: Nodes, _ new: Nodes) {
    var (old, new) = (old, new)
    if old.isEmpty {
      insert(new)
      return
    }
    while let height = new.first?.height, old[0].height != height {
      if old[0].height > height { old = Self.expand(old[...]) } else { new = Self.expand(new[...]) }
    }
    var (nextOld, nextNew) = (0, 0)
    for (matchOld, matchNew) in Self.anchors(old, new) {
      alignGap(old[nextOld..<matchOld], new[nextNew..<matchNew])
      position += new[matchNew].count
      (nextOld, nextNew) = (matchOld + 1, matchNew + 1)
    }
    alignGap(old[nextOld...], new[nextNew...])
  }

  /// Align neighbours that have no node in common.
  @inlinable
  mutating func alignGap(_ old: Nodes.SubSequence, _ new: Nodes.SubSequence) {
    if old.isEmpty && new.isEmpty { return }
    if old.isEmpty {
      insert(Nodes(new))
    } else if new.isEmpty {
      remove(old.reduce(0) { $0 + $1.count })
    } else if old.count == 1 && new.count == 1 {
      align(old[old.startIndex], new[new.startIndex])
    } else if old.count == new.count && zip(old, new).allSatisfy({ $0.count == $1.count }) {
      // Equal numbers of nodes of equal sizes: most likely, nothing was moved.
      for (old, new) in zip(old, new) { align(old, new) }
    } else if old[old.startIndex].height == 0 {
      align(Self.elements(of: old), Self.elements(of: new))
    } else {
      align(Self.expand(old), Self.expand(new))
    }
  }

  @inlinable
  static func expand(_ nodes: Nodes.SubSequence) -> Nodes {
    var result = Nodes()
    for node in nodes { result.append(contentsOf: node.children.lazy.map { $0.node }) }
    return result
  }

  @inlinable
  static func elements(of leaves: Nodes.SubSequence) -> Elements {
    if leaves.count == 1 { return leaves[leaves.startIndex].elements }
    var result = Elements()
    for leaf in leaves { result.append(contentsOf: leaf.elements) }
    return result
  }

  /// The longest increasing sequence of positions of nodes that are in both.
  @inlinable
  static func anchors(_ old: Nodes, _ new: Nodes) -> ContiguousArray<(Int, Int)> {
    var result = ContiguousArray<(Int, Int)>()
    let most = Swift.min(old.count, new.count)
    var head = 0
    while head < most && old[head] === new[head] {
      result.append((head, head))
      head += 1
    }
    var tail = 0
    while tail < most - head && old[old.count - 1 - tail] === new[new.count - 1 - tail] {
      tail += 1
    }
    let (oldRest, newRest) = (head..<old.count - tail, head..<new.count - tail)
    if oldRest.count > 0 && newRest.count > 0 && oldRest.count + newRest.count > 2 {
      var places: [ObjectIdentifier: Int] = [:]
      places.reserveCapacity(oldRest.count)
      for place in oldRest { places[ObjectIdentifier(old[place])] = place }
      var pairs = ContiguousArray<(Int, Int)>()
      for place in newRest {
        if let match = places[ObjectIdentifier(new[place])] { pairs.append((match, place)) }
      }
      result.append(contentsOf: rising(pairs))
    }
    for back in stride(from: tail, to: 0, by: -1) {
      result.append((old.count - back, new.count - back))
    }
    return result
  }

  /// A longest subsequence with increasing old positions; the new ones increase already.
  /// O(n log n).
  @inlinable
  static func rising(_ pairs: ContiguousArray<(Int, Int)>) -> ContiguousArray<(Int, Int)> {
    // `ends[k]` is the pair with the smallest old place at which a rising sequence of k + 1 ends.
    var ends = ContiguousArray<Int>()
    var before = ContiguousArray<Int>(repeating: -1, count: pairs.count)
    for index in pairs.indices {
      var (low, high) = (0, ends.count)
      while low < high {
        let middle = (low + high) / 2
        if pairs[ends[middle]].0 < pairs[index].0 { low = middle + 1 } else { high = middle }
      }
      if low > 0 { before[index] = ends[low - 1] }
      if low == ends.count { ends.append(index) } else { ends[low] = index }
    }
    var result = ContiguousArray<(Int, Int)>()
    var index = ends.last ?? -1
    while index >= 0 {
      result.append(pairs[index])
      index = before[index]
    }
    result.reverse()
    return result
  }

  // MARK: Elements

  @inlinable
  mutating func align(_ old: Elements, _ new: Elements) {
    let most = Swift.min(old.count, new.count)
    var head = 0
    while head < most && old[head].isSame(as: new[head]) { head += 1 }
    var tail = 0
    while tail < most - head
      && old[old.count - 1 - tail].isSame(as: new[new.count - 1 - tail])
    { tail += 1 }
    position += head
    let (oldRest, newRest) = (head..<old.count - tail, head..<new.count - tail)
    if oldRest.isEmpty || newRest.isEmpty || oldRest.count == 1 && newRest.count == 1 {
      change(old, oldRest, new, newRest)
    } else {
      var (nextOld, nextNew) = (head, head)
      for (matchOld, matchNew) in Self.matches(old, oldRest, new, newRest) {
        change(old, nextOld..<matchOld, new, nextNew..<matchNew)
        position += 1
        (nextOld, nextNew) = (matchOld + 1, matchNew + 1)
      }
      change(old, nextOld..<oldRest.upperBound, new, nextNew..<newRest.upperBound)
    }
    position += tail
  }

  /// The positions of unchanged elements, increasing in both arrays.
  @inlinable
  static func matches(
    _ old: Elements, _ oldRange: Range<Int>, _ new: Elements, _ newRange: Range<Int>
  ) -> ContiguousArray<(Int, Int)> {
    var inPlace = ContiguousArray<(Int, Int)>()
    for (first, second) in zip(oldRange, newRange) where old[first].isSame(as: new[second]) {
      inPlace.append((first, second))
    }
    let limit: Int
    if oldRange.count == newRange.count {
      // Moving elements is worth it when it takes fewer steps than editing them in place.
      limit = Swift.min(128, oldRange.count - inPlace.count)
    } else {
      limit = oldRange.count <= 64 && newRange.count <= 64 ? 128 : 64
    }
    return shortest(old, oldRange, new, newRange, limit: limit) ?? inPlace
  }

  /// The elements that the shortest script of at most `limit` removals and insertions keeps.
  /// O(length + limit²) expected.
  ///
  /// Source: Myers, "An O(ND) difference algorithm and its variations" (1986), the greedy one.
  @inlinable
  static func shortest(
    _ old: Elements, _ oldRange: Range<Int>, _ new: Elements, _ newRange: Range<Int>, limit: Int
  ) -> ContiguousArray<(Int, Int)>? {
    let (olds, news) = (oldRange.count, newRange.count)
    if abs(olds - news) > limit { return nil }
    // The furthest old place on diagonal k after d steps is at d² + d + k; -1 where there is none.
    var furthest = ContiguousArray<Int>()
    for steps in 0...Swift.min(limit, olds + news) {
      let row = steps * steps + steps
      furthest.append(contentsOf: repeatElement(-1, count: 2 * steps + 1))
      for diagonal in stride(from: -steps, through: steps, by: 2) {
        var place =
          steps == 0
          ? 0 : step(furthest, to: diagonal, at: steps, olds: olds, news: news).place
        if place < 0 { continue }
        while place < olds && place - diagonal < news
          && old[oldRange.lowerBound + place].isSame(
            as: new[newRange.lowerBound + place - diagonal])
        { place += 1 }
        furthest[row + diagonal] = place
        if place == olds && place - diagonal == news {
          return kept(
            furthest, steps: steps, oldRange: oldRange, newRange: newRange)
        }
      }
    }
    return nil
  }

  /// The position after a removal or an insertion from the better of the two neighbouring
  /// diagonals.
  @inlinable
  static func step(
    _ furthest: ContiguousArray<Int>, to diagonal: Int, at steps: Int, olds: Int, news: Int
  ) -> (place: Int, from: Int) {
    let row = (steps - 1) * (steps - 1) + steps - 1
    var best = (place: -1, from: 0)
    if diagonal - 1 >= 1 - steps {
      let place = furthest[row + diagonal - 1]
      if place >= 0 && place < olds { best = (place + 1, diagonal - 1) }
    }
    if diagonal + 1 <= steps - 1 {
      let place = furthest[row + diagonal + 1]
      if place > best.place && place - diagonal <= news { best = (place, diagonal + 1) }
    }
    return best
  }

  @inlinable
  static func kept(
    _ furthest: ContiguousArray<Int>, steps: Int, oldRange: Range<Int>, newRange: Range<Int>
  ) -> ContiguousArray<(Int, Int)> {
    var result = ContiguousArray<(Int, Int)>()
    var diagonal = oldRange.count - newRange.count
    var place = oldRange.count
    for step in stride(from: steps, through: 0, by: -1) {
      var start = (place: 0, from: 0)
      if step > 0 {
        start = self.step(
          furthest, to: diagonal, at: step, olds: oldRange.count, news: newRange.count)
      }
      while place > start.place {
        place -= 1
        result.append((oldRange.lowerBound + place, newRange.lowerBound + place - diagonal))
      }
      diagonal = start.from
      place = step > 0 ? furthest[(step - 1) * (step - 1) + step - 1 + diagonal] : 0
    }
    result.reverse()
    return result
  }

  // MARK: Writing

  /// Write the change of one run of elements into another: edits of the paired elements, then a
  /// splice; or one splice, if all paired elements are replaced and this is shorter.
  @inlinable
  mutating func change(
    _ old: Elements, _ oldRange: Range<Int>, _ new: Elements, _ newRange: Range<Int>
  ) {
    let paired = Swift.min(oldRange.count, newRange.count)
    let (mark, marked) = (edits.bytes.count, editCount)
    var valueBytes = 0
    var allReplaced = true
    for offset in 0..<paired {
      let start = edits.bytes.count
      edits.encode(position + offset)
      let patch = edits.bytes.count
      guard
        new[newRange.lowerBound + offset].encodeDifference(
          from: old[oldRange.lowerBound + offset], into: &edits)
      else {
        edits.bytes.removeSubrange(start...)
        allReplaced = false
        continue
      }
      editCount += 1
      let first = edits.bytes[patch]
      allReplaced = allReplaced && first >> 5 != 5 && (first >> 5 != 4 || first == 0x81)
      valueBytes += edits.bytes.count - patch - (first == 0x81 ? 1 : 0)
    }
    let heads =
      oldRange.count == newRange.count
      ? CBORDecoder.headLength(UInt64(position)) + 2 * CBORDecoder.headLength(UInt64(paired)) : 0
    if paired > 1 && allReplaced && valueBytes + heads < edits.bytes.count - mark {
      edits.bytes.removeSubrange(mark...)
      editCount = marked
      splice(removing: oldRange.count, inserting: new[newRange])
    } else {
      position += paired
      if oldRange.count != newRange.count {
        splice(
          removing: oldRange.count - paired, inserting: new[newRange.dropFirst(paired)])
      }
    }
  }

  @inlinable
  mutating func splice(removing removed: Int, inserting elements: Elements.SubSequence) {
    openSplice(removing: removed, inserting: elements.count)
    for element in elements { element.encode(into: &splices) }
  }

  @inlinable
  mutating func openSplice(removing removed: Int, inserting inserted: Int) {
    spliceCount += 1
    splices.encode(position)
    splices.encode(removed)
    splices.array(inserted)
    position += inserted
  }

  @inlinable
  mutating func remove(_ count: Int) {
    if count > 0 { openSplice(removing: count, inserting: 0) }
  }

  @inlinable
  mutating func insert(_ nodes: Nodes) {
    let count = nodes.reduce(0) { $0 + $1.count }
    if count == 0 { return }
    openSplice(removing: 0, inserting: count)
    for node in nodes { TreeArray.encode(node, into: &splices) }
  }
}
