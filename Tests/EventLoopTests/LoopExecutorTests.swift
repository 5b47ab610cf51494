import EventLoop
import Testing

private actor Resident {
  let loop: Loop
  private(set) var count = 0

  init(on loop: Loop) {
    self.loop = loop
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  func add() -> Bool {
    count += 1
    return loop.isOnLoop
  }

  func waitForAnotherThread() async -> Bool {
    await withCheckedContinuation { continuation in onThread { continuation.resume() } }
    return loop.isOnLoop
  }
}

/// An actor without an executor of its own runs where the calling task prefers to run.
private actor Guest {
  private(set) var count = 0

  func add(on loop: Loop) async -> Bool {
    preconditionIsolated()
    count += 1
    await withCheckedContinuation { continuation in onThread { continuation.resume() } }
    preconditionIsolated()
    return loop.isOnLoop
  }
}

@Suite struct LoopExecutorTests {
  @Test func `an actor with the loop as executor runs on it`() async throws {
    let loop = try Loop.startThread(name: "actor")
    let resident = Resident(on: loop)
    for _ in 0..<100 { #expect(await resident.add()) }
    #expect(await resident.waitForAnotherThread())
    #expect(await resident.count == 100)
    loop.stop()
    loop.waitUntilEnded()
  }

  @Test func `a callback on the loop may assume the isolation of such an actor`() async throws {
    let loop = try Loop.startThread(name: "isolation")
    let resident = Resident(on: loop)
    await withCheckedContinuation { continuation in
      loop.execute {
        let isOnLoop = resident.assumeIsolated { $0.add() }
        #expect(isOnLoop)
        continuation.resume()
      }
    }
    #expect(await resident.count == 1)
    loop.stop()
    loop.waitUntilEnded()
  }

  @Test func `a task that prefers the loop stays on it across every suspension`() async throws {
    let loop = try Loop.startThread(name: "task")
    let resident = Resident(on: loop)
    let places = await Task(executorPreference: loop) {
      var places = [loop.isOnLoop]
      await Task.yield()
      places.append(loop.isOnLoop)
      await withCheckedContinuation { continuation in onThread { continuation.resume() } }
      places.append(loop.isOnLoop)
      try? await Task.sleep(for: .milliseconds(1))
      places.append(loop.isOnLoop)
      places.append(await resident.add())
      places.append(loop.isOnLoop)
      let children = await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<10 { group.addTask { loop.isOnLoop } }
        return await group.reduce(into: []) { $0.append($1) }
      }
      places += children
      places.append(loop.isOnLoop)
      return places
    }.value
    #expect(places == Array(repeating: true, count: 17))
    loop.stop()
    loop.waitUntilEnded()
  }

  @Test func `an actor without an executor runs on the loop that its caller prefers`() async throws
  {
    let loop = try Loop.startThread(name: "guest")
    let guest = Guest()
    let places = await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<50 {
        group.addTask(executorPreference: loop) { await guest.add(on: loop) }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    #expect(places == Array(repeating: true, count: 50))
    #expect(await guest.count == 50)
    loop.stop()
    loop.waitUntilEnded()
  }

  @Test func `a thousand tasks lose no call to an actor on the loop`() async throws {
    let loop = try Loop.startThread(name: "thousand")
    let resident = Resident(on: loop)
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<1000 {
        if number.isMultiple(of: 2) {
          group.addTask(executorPreference: loop) { _ = await resident.add() }
        } else {
          group.addTask(executorPreference: globalConcurrentExecutor) { _ = await resident.add() }
        }
      }
    }
    #expect(await resident.count == 1000)
    loop.stop()
    loop.waitUntilEnded()
  }
}
