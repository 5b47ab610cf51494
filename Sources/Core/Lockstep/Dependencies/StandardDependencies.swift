/// Tells the time. In a reducer it is the recorded time of the action, so that a replay of the log
/// gives the same states.
public struct DateGenerator: Sendable {
  private let generate: @Sendable () -> Timestamp
  private let isFixed: Bool

  /// A generator that calls `generate`, except in reducers.
  public init(_ generate: @escaping @Sendable () -> Timestamp) {
    self.generate = generate
    isFixed = false
  }

  private init(fixed time: Timestamp) {
    generate = { time }
    isFixed = true
  }

  /// A generator that always tells the same time, in reducers too.
  public static func constant(_ time: Timestamp) -> DateGenerator { DateGenerator(fixed: time) }

  public var now: Timestamp {
    if !isFixed, let reduction = DependencyValues.current.reduction { return reduction.time }
    return generate()
  }

  public func callAsFunction() -> Timestamp { now }
}

/// Makes identifiers. In a reducer they are derived from the recorded seed of the action.
public struct UniqueIDGenerator: Sendable {
  private let generate: (@Sendable () -> UniqueID)?

  /// A generator that calls `generate`, in reducers too.
  public init(_ generate: @escaping @Sendable () -> UniqueID) { self.generate = generate }

  private init() { generate = nil }

  /// Random identifiers.
  public static let random = UniqueIDGenerator()

  /// A new identifier.
  public func callAsFunction() -> UniqueID {
    if let generate { return generate() }
    return RandomSource.live { UniqueID(using: &$0) }
  }
}

/// Draws random numbers. In a reducer they are derived from the recorded seed of the action.
///
///     let die = random { Int.random(in: 1...6, using: &$0) }
public struct RandomSource: Sendable {
  private let draw: @Sendable () -> UInt64
  private let isFixed: Bool

  /// Numbers from `draw`, in reducers too.
  public init(_ draw: @escaping @Sendable () -> UInt64) { self.init(isFixed: true, draw) }

  private init(isFixed: Bool, _ draw: @escaping @Sendable () -> UInt64) {
    self.draw = draw
    self.isFixed = isFixed
  }

  /// Numbers from the system's generator, except in reducers.
  public static let live = RandomSource(isFixed: false) {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }

  /// The live numbers, except that every use outside of a reducer is reported.
  fileprivate static func reporting(_ use: LiveUseInTest?) -> RandomSource {
    RandomSource(isFixed: false) {
      use?.report()
      return live.draw()
    }
  }

  public func callAsFunction<R>(_ body: (inout any RandomNumberGenerator) throws -> R) rethrows
    -> R
  {
    var generator: any RandomNumberGenerator = Generator(source: self)
    return try body(&generator)
  }

  private struct Generator: RandomNumberGenerator {
    let source: RandomSource

    mutating func next() -> UInt64 {
      if !source.isFixed, let reduction = DependencyValues.current.reduction {
        return reduction.nextRandom()
      }
      return source.draw()
    }
  }
}

// What a `TestStore` does not set has a test value here.

private enum ClockKey: DependencyKey {
  // Daemons set a clock that needs no timer of libdispatch (`LoopClock`).
  static var liveValue: any Clock<Duration> { ContinuousClock() }
}

private enum DateKey: DependencyKey {
  // A shell, which knows the time, sets it; pure code has no clock.
  static var liveValue: DateGenerator { .constant(Timestamp(nanoseconds: 0)) }
}

private enum UniqueIDKey: DependencyKey {
  static var liveValue: UniqueIDGenerator { .random }
}

private enum RandomKey: DependencyKey {
  static var liveValue: RandomSource { .live }
  static var testValue: RandomSource { .reporting(LiveUseInTest.current) }
}

extension DependencyValues {
  /// The clock of effects that wait. Sleep with it, not with `Task.sleep`: tests advance it, and in
  /// daemons libuv drives it (`LoopClock`).
  public var clock: any Clock<Duration> {
    get { self[ClockKey.self] }
    set { self[ClockKey.self] = newValue }
  }

  /// The time.
  public var date: DateGenerator {
    get { self[DateKey.self] }
    set { self[DateKey.self] = newValue }
  }

  /// New identifiers.
  public var uuid: UniqueIDGenerator {
    get { self[UniqueIDKey.self] }
    set { self[UniqueIDKey.self] = newValue }
  }

  /// Random numbers.
  public var random: RandomSource {
    get { self[RandomKey.self] }
    set { self[RandomKey.self] = newValue }
  }
}
