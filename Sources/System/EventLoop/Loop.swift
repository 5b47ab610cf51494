// Theory of operation.
//
// One iteration of libuv is: timers, what was deferred, `prepare`, poll, `check`, close callbacks.
// Every callback that we get from libuv notes that something happened (`worked`). At `prepare`
// and at `check` we end the turn: run the queued work, then call `onTurnEnd` if anything happened
// since its last call. So what timers and close callbacks did is flushed before the loop blocks,
// and what a poll brought is flushed once, however many sockets were ready. What is too much for one
// turn asks for another (`turnAgain`), which ends at the next `check`: what is ready by then comes
// first.
//
// Work has two queues. `local` belongs to the loop's thread and needs no lock. `inbox` is for
// other threads: whoever finds it empty wakes the loop, and only a woken loop looks into it,
// so that a turn of pure input and output takes no lock at all.
//
// Every handle's `data` holds a retained reference to its owner, given back in the close
// callback. So an owner lives until it is closed, and the loop can find all owners when it ends.

internal import CLibuv
internal import Glibc
internal import Synchronization

/// A libuv event loop, and the executor of everything that runs on it.
///
/// Pipes, listeners, timers and signal watchers belong to one loop and are used on its thread
/// only. They are therefore not Sendable; get to them through `execute`, or through an actor or
/// a task that has this loop as its executor.
///
/// Sendable because state is either constant, or atomic, or inside `inbox`'s lock, or touched on
/// the loop's own thread only, which the handles assert.
public final class Loop: @unchecked Sendable {
  /// Called at the end of every turn in which at least one callback ran, and of one that `turnAgain`
  /// asked for, before the loop blocks.
  ///
  /// A turn is everything that was ready together: timers, reads, accepts, finished writes,
  /// queued work. Use it to flush once for all of them. Read and set it on the loop only.
  @exclusivity(unchecked) public var onTurnEnd: (() -> Void)?

  let raw = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)
  /// Every read of every pipe goes here; its bytes are valid during one callback.
  let readBuffer: UnsafeMutableRawBufferPointer
  /// The most bytes that one read returns; the size of the buffer if that is less. Read and set it on
  /// the loop only.
  public var readLength: Int {
    get { mostRead }
    set { mostRead = newValue }
  }
  /// Whether the turn that ends is one that `turnAgain` asked for. Read it on the loop only.
  public var isTurningAgain: Bool { turnsAgain }

  // What is `@exclusivity(unchecked)` here is read or changed at an instant, on the loop's thread, by what
  // runs no code of others: no two accesses can overlap. Other modules do not see it of a property, and check
  // each access: what they use is computed.
  @exclusivity(unchecked) private var mostRead = Int.max
  /// Whether a callback ran since `onTurnEnd` was last called.
  @exclusivity(unchecked) var worked = false
  /// Whether there is work of other threads.
  @exclusivity(unchecked) private var isWoken = false
  @exclusivity(unchecked) private var isEndingTurn = false
  /// Whether a turn ends after the next poll, whatever that brings.
  @exclusivity(unchecked) private var mustTurnAgain = false
  @exclusivity(unchecked) private var turnsAgain = false
  /// Counts the polls: what was ready at one is read before the next.
  @exclusivity(unchecked) private(set) var polls: UInt64 = 0

  let inbox = Locked(Inbox())
  /// Changed by a swap, or by adding to it, and emptied only where something else holds the same work:
  /// so nothing that it held is released while it is being changed.
  @exclusivity(unchecked) var local: [Work] = []
  @exclusivity(unchecked) private var spare: [Work] = []
  private(set) var isClosed = false

  /// The thread that may use the loop: the one that made it, then the one that runs it.
  private let owner: Atomic<UInt>
  /// The thread inside `run`, or 0. Only it may use `local`.
  let runner = Atomic<UInt>(0)
  private let started = Gate()
  private let ended = Gate()

  let async = UnsafeMutablePointer<uv_async_t>.allocate(capacity: 1)
  private let prepare = UnsafeMutablePointer<uv_prepare_t>.allocate(capacity: 1)
  private let afterPoll = UnsafeMutablePointer<uv_check_t>.allocate(capacity: 1)
  private let idle = UnsafeMutablePointer<uv_idle_t>.allocate(capacity: 1)

  /// A loop that is not running yet; handles can be made on it at once, on this thread.
  ///
  /// `readBufferSize` is the most bytes that one read can return. Throws when the process has no
  /// descriptors left.
  public init(readBufferSize: Int = 65_536) throws(LoopError) {
    precondition(readBufferSize > 0, "A loop cannot read into an empty buffer.")
    owner = Atomic(pthread_self())
    readBuffer = .allocate(byteCount: readBufferSize, alignment: 16)
    let status = uv_loop_init(raw)
    if status < 0 {
      isClosed = true
      throw LoopError(code: status, operation: "start an event loop")
    }
    let opened = openOwnHandles()
    if opened < 0 {
      closeDown()
      throw LoopError(code: opened, operation: "open the event loop's wake-up descriptor")
    }
  }

  deinit {
    if !isClosed {
      // The loop never ran, so its queued work never runs.
      let dropped = inbox.withLock { inbox in
        inbox.isOpen = false
        defer { inbox.work = [] }
        return inbox.work
      }
      withExtendedLifetime(dropped) { closeDown() }
    }
    idle.deallocate()
    afterPoll.deallocate()
    prepare.deallocate()
    async.deallocate()
    raw.deallocate()
    readBuffer.deallocate()
  }

  /// A loop that is already running, on a new thread of its own, until `stop`.
  ///
  /// The system keeps the first 15 bytes of `name`. Throws when no descriptor or thread is
  /// available.
  public static func startThread(
    name: String, readBufferSize: Int = 65_536
  ) throws(LoopError) -> Loop {
    let loop = try Loop(readBufferSize: readBufferSize)
    let start = Unmanaged.passRetained(ThreadStart(loop: loop, name: String(name.prefix(15))))
    var thread = pthread_t()
    let status = pthread_create(&thread, nil, runThread, start.toOpaque())
    if status != 0 {
      start.release()
      throw LoopError(code: -status, operation: "start the thread \(name)")
    }
    pthread_detach(thread)
    loop.started.wait()
    return loop
  }

  /// Runs the loop on the calling thread until `stop`, then closes every handle on it.
  ///
  /// A loop runs once. Work that was queued before `stop` has run when this returns; later work is
  /// dropped, and so are bytes that no pipe has written yet.
  public func run() {
    precondition(!isClosed, "A loop can only run once.")
    precondition(
      runner.exchange(pthread_self(), ordering: .acquiringAndReleasing) == 0,
      "This loop is running already.")
    owner.store(pthread_self(), ordering: .releasing)
    started.open()
    uv_run(raw, UV_RUN_DEFAULT)
    closeDown()
    ended.open()
  }

  /// Ends `run` once the work queued so far has run. Any thread may call it, at any time.
  public func stop() {
    execute { uv_stop(self.raw) }
  }

  /// Blocks the calling thread until `run` is over and every handle is closed.
  public func waitUntilEnded() {
    precondition(runner.load(ordering: .acquiring) != pthread_self(), "The loop waits for itself.")
    ended.wait()
  }

  /// Whether the caller is on the thread that runs the loop (or made it, while it is not running).
  public var isOnLoop: Bool {
    owner.load(ordering: .relaxed) == pthread_self()
  }

  /// Stops the program unless the caller is on the loop's thread.
  public func preconditionOnLoop() {
    precondition(isOnLoop, "This may only be called on the loop's own thread.")
  }

  /// The time at which this turn began, in monotonic nanoseconds with millisecond resolution.
  ///
  /// It costs no system call. Use it on the loop only.
  public var now: UInt64 {
    uv_now(raw) * 1_000_000
  }

  /// The precise time, in nanoseconds of the same monotonic clock.
  public static func monotonicNanoseconds() -> UInt64 {
    uv_hrtime()
  }

  // MARK: - Turns

  private func openOwnHandles() -> Int32 {
    let me = Unmanaged.passUnretained(self).toOpaque()
    // These three cannot fail, and `closeDown` relies on them.
    uv_prepare_init(raw, prepare)
    uv_check_init(raw, afterPoll)
    uv_idle_init(raw, idle)
    prepare.pointee.data = me
    afterPoll.pointee.data = me
    idle.pointee.data = me
    uv_prepare_start(prepare) { Loop.owning($0!.pointee.data) { $0.endTurn(beforePoll: true) } }
    uv_check_start(afterPoll) { Loop.owning($0!.pointee.data) { $0.endTurn(beforePoll: false) } }
    let status = uv_async_init(raw, async) { Loop.owning($0!.pointee.data) { $0.isWoken = true } }
    if status < 0 { return status }
    async.pointee.data = me
    inbox.withLock { $0.isOpen = true }
    return 0
  }

  private static func owning(_ data: UnsafeMutableRawPointer, _ body: (Loop) -> Void) {
    Unmanaged<Loop>.fromOpaque(data)._withUnsafeGuaranteedRef(body)
  }

  /// Has another turn end after the next poll, which does not wait: for work that is done in slices,
  /// between which others come first. Call it on the loop only.
  public func turnAgain() {
    assert(isOnLoop)
    mustTurnAgain = true
  }

  private func endTurn(beforePoll: Bool) {
    if isEndingTurn { return }
    isEndingTurn = true
    if mustTurnAgain, !beforePoll {
      mustTurnAgain = false
      turnsAgain = true
      worked = true
    }
    runQueuedWork()
    if worked {
      worked = false
      onTurnEnd?()
      turnsAgain = false
    }
    isEndingTurn = false
    if !beforePoll { return }
    polls &+= 1
    // With an active idle handle the poll does not block.
    if local.isEmpty, !mustTurnAgain {
      uv_idle_stop(idle)
    } else {
      uv_idle_start(idle) { _ in }
    }
  }

  /// Runs queued work, and the work that it queues in turn. Bounded: otherwise work that always
  /// queues more work would keep the loop from ever polling.
  private func runQueuedWork() {
    for _ in 0..<64 {
      if isWoken {
        isWoken = false
        inbox.withLock { inbox in
          if local.isEmpty {
            swap(&local, &inbox.work)
          } else {
            local.append(contentsOf: inbox.work)
            inbox.work.removeAll(keepingCapacity: true)
          }
        }
      }
      if local.isEmpty { return }
      runLocalWork()
    }
  }

  private func runLocalWork() {
    worked = true
    var batch: [Work] = []
    swap(&batch, &spare)
    swap(&batch, &local)
    for index in batch.indices {
      // Released when it has run, not with the rest of the batch: it may have captured a value that
      // takes long to release, and must not be its last owner when another thread is to release it.
      var work = Work.done
      swap(&work, &batch[index])
      run(work)
    }
    // The memory of a single burst should not be kept for ever.
    if batch.capacity > 4096 { return }
    batch.removeAll(keepingCapacity: true)
    spare = batch
  }

  private func run(_ work: Work) {
    switch work {
    case .job(let job):
      job.runSynchronously(
        isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    case .body(let body), .either(let body, _):
      body()
    case .done: break
    }
  }

  // MARK: - The end

  private func closeDown() {
    owner.store(pthread_self(), ordering: .releasing)
    // Close callbacks may queue work, and work may open handles; give them a fair number of turns.
    for _ in 0..<1000 {
      closeOwners()
      isWoken = true
      uv_run(raw, UV_RUN_NOWAIT)
      if isQuiet { break }
    }
    var leftovers = inbox.withLock { inbox in
      inbox.isOpen = false
      defer { inbox.work = [] }
      return inbox.work
    }
    isClosed = true
    runner.store(0, ordering: .releasing)
    leftovers += local
    local = []
    closeOwners()
    closeOwnHandles()
    onTurnEnd = nil
    uv_run(raw, UV_RUN_DEFAULT)
    let status = uv_loop_close(raw)
    precondition(status == 0, "A handle was left open at the end of its loop.")
    for case .either(_, let dropped) in leftovers { dropped() }
    leftovers.removeAll()
  }

  private var isQuiet: Bool {
    var owners = 0
    uv_walk(
      raw,
      { handle, count in
        let kind = uv_handle_get_type(handle)
        if kind != UV_PREPARE && kind != UV_CHECK && kind != UV_IDLE && kind != UV_ASYNC {
          count!.assumingMemoryBound(to: Int.self).pointee += 1
        }
      }, &owners)
    return owners == 0 && local.isEmpty && inbox.withLock { $0.work.isEmpty }
  }

  private func closeOwners() {
    uv_walk(
      raw,
      { handle, loop in
        guard let data = handle?.pointee.data, data != loop else { return }
        let owner = Unmanaged<AnyObject>.fromOpaque(data).takeUnretainedValue()
        (owner as? any HandleOwner)?.closeForLoop()
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  private func closeOwnHandles() {
    uv_walk(
      raw,
      { handle, loop in
        guard uv_is_closing(handle) == 0, handle!.pointee.data == loop else { return }
        uv_close(handle, nil)
      }, Unmanaged.passUnretained(self).toOpaque())
  }
}

/// A class that owns handles on a loop; the loop closes them when it ends.
protocol HandleOwner: AnyObject {
  func closeForLoop()
}

private final class ThreadStart {
  let loop: Loop
  let name: String

  init(loop: Loop, name: String) {
    self.loop = loop
    self.name = name
  }
}

private let runThread: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = {
  let start = Unmanaged<ThreadStart>.fromOpaque($0!).takeRetainedValue()
  clibuv_name_thread(start.name)
  start.loop.run()
  return nil
}
