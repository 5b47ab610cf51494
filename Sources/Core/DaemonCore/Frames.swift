/// The frames that a connection is sent together, in their order; a large one may be in two pieces. Nearly
/// always they are one or two, for which no list is allocated. Their bytes are shared, not copied.
public enum Frames: Sendable {
  case none
  case one([UInt8])
  case two([UInt8], [UInt8])
  /// Three or more.
  case many([[UInt8]])

  /// O(1): a list of three or more is shared.
  @inline(__always)
  public init(_ frames: [[UInt8]]) {
    switch frames.count {
    case 0: self = .none
    case 1: self = .one(frames[0])
    case 2: self = .two(frames[0], frames[1])
    default: self = .many(frames)
    }
  }

  /// The bytes of all of them. O(their number).
  var byteCount: Int { reduce(0) { $0 + $1.count } }

  /// O(1), amortised; O(n) if the list of more than two is shared.
  @inline(__always)
  mutating func append(_ frame: [UInt8]) {
    switch self {
    case .none: self = .one(frame)
    case .one(let first): self = .two(first, frame)
    case .two, .many: appendToMany(frame)
    }
  }

  @inline(never)
  private mutating func appendToMany(_ frame: [UInt8]) {
    changeList { $0.append(frame) }
  }

  /// Append bytes to the last of three or more.
  mutating func append(toLast bytes: [UInt8]) {
    changeList { $0[$0.count - 1].append(contentsOf: bytes) }
  }

  /// Change them as a list, which is not copied unless others have it too.
  @inline(__always)
  private mutating func changeList(_ body: (inout [[UInt8]]) -> Void) {
    var list: [[UInt8]]
    if case .many(let frames) = self { list = frames } else { list = Array(self) }
    self = .none
    body(&list)
    self = Self(list)
  }
}

extension Frames: RandomAccessCollection {
  public var startIndex: Int { 0 }

  public var endIndex: Int {
    switch self {
    case .none: 0
    case .one: 1
    case .two: 2
    case .many(let frames): frames.count
    }
  }

  public subscript(index: Int) -> [UInt8] {
    switch self {
    case .one(let first) where index == 0: first
    case .two(let first, let second) where index == 0 || index == 1: index == 0 ? first : second
    case .many(let frames): frames[index]
    default: preconditionFailure("There is no frame \(index).")
    }
  }
}

extension Frames: Equatable {
  public static func == (one: Self, other: Self) -> Bool { one.elementsEqual(other) }
}

extension Frames: ExpressibleByArrayLiteral {
  public init(arrayLiteral frames: [UInt8]...) { self.init(frames) }
}
