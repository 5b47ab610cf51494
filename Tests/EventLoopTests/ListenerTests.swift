import EventLoop
import Glibc
import Testing

@Suite struct ListenerTests {
  @Test func `a path that is too long is refused with its length and the limit`() throws {
    try withLoop { loop in
      let path = "/tmp/" + String(repeating: "x", count: 103)
      let error = #expect(throws: LoopError.self) {
        _ = try Listener.bind(path: path, mode: 0o600, on: loop) { _ in }
      }
      #expect(error?.code == -ENAMETOOLONG)
      #expect(
        error?.description == "bind \(path) (108 bytes, and a socket's path has at most 107): "
          + "name too long (ENAMETOOLONG)")
      Pipe.connect(path: path, on: loop) { result in
        guard case .failure(let error) = result else {
          Issue.record("connected")
          return
        }
        #expect(error.name == "ENAMETOOLONG")
        loop.stop()
      }
    }
  }

  @Test(arguments: ["", "/tmp/a\0b", "/no/such/directory/socket"])
  func `an invalid path is refused`(path: String) throws {
    try withLoop { loop in
      #expect(throws: LoopError.self) {
        _ = try Listener.bind(path: path, mode: 0o600, on: loop) { _ in }
      }
      loop.stop()
    }
  }

  @Test func `a file that already exists is EADDRINUSE, and is kept`() throws {
    try withSocketPath { path in
      try withLoop { loop in
        try Listener.bind(path: path, mode: 0o600, on: loop) { _ in }.close(unlink: false)
        let error = #expect(throws: LoopError.self) {
          _ = try Listener.bind(path: path, mode: 0o600, on: loop) { _ in }
        }
        #expect(error?.name == "EADDRINUSE")
        #expect(access(path, F_OK) == 0)
        loop.stop()
      }
    }
  }

  @Test func `closing removes the file only when asked, and only its own`() throws {
    try withSocketPath { path in
      try withLoop { loop in
        let first = try Listener.bind(path: path, mode: 0o600, on: loop) { _ in }
        unlink(path)
        let second = try Listener.bind(path: path, mode: 0o600, on: loop) { _ in }
        first.close(unlink: true)
        #expect(access(path, F_OK) == 0)
        second.close(unlink: true)
        second.close(unlink: true)
        #expect(access(path, F_OK) != 0)
        loop.stop()
      }
    }
  }

  @Test(arguments: [0o600, 0o660, 0o666, 0o777] as [mode_t])
  func `the file has the mode that was asked for`(mode: mode_t) throws {
    try withSocketPath { path in
      try withLoop { loop in
        _ = try Listener.bind(path: path, mode: mode, on: loop) { _ in }
        var file = stat()
        #expect(lstat(path, &file) == 0)
        #expect(file.st_mode & 0o7777 == mode)
        #expect(file.st_mode & S_IFMT == S_IFSOCK)
        loop.stop()
      }
    }
  }

  @Test func `both ends know each other's credentials`() throws {
    try withSocketPath { path in
      var peers: [PeerIdentity?] = []
      try withLoop { loop in
        func add(_ pipe: Pipe) {
          peers.append(pipe.peer)
          pipe.close()
          #expect(pipe.peer == nil)
          if peers.count == 2 { loop.stop() }
        }
        _ = try Listener.bind(path: path, mode: 0o600, on: loop, onConnection: add)
        Pipe.connect(path: path, on: loop) { result in
          if case .success(let pipe) = result { add(pipe) }
        }
      }
      var groups = [gid_t](repeating: 0, count: 256)
      let count = getgroups(256, &groups)
      for peer in peers {
        #expect(peer?.pid == getpid())
        #expect(peer?.uid == getuid())
        #expect(peer?.gid == getgid())
        #expect(peer?.groups.sorted() == groups.prefix(Int(count)).sorted())
      }
    }
  }

  @Test func `a socket without a listener is ECONNREFUSED, a missing file ENOENT`() throws {
    try withSocketPath { path in
      var names: [String] = []
      try withLoop { loop in
        func connect() {
          Pipe.connect(path: path, on: loop) { result in
            if case .failure(let error) = result { names.append(error.name) }
            if names.count == 2 { return loop.stop() }
            unlink(path)
            connect()
          }
          #expect(names.count < 2)
        }
        try Listener.bind(path: path, mode: 0o600, on: loop) { _ in }.close(unlink: false)
        connect()
      }
      #expect(names == ["ECONNREFUSED", "ENOENT"])
    }
  }

  @Test func `an adopted listening descriptor accepts`() throws {
    try withSocketPath { path in
      var accepted = 0
      try withLoop { loop in
        let maker = try Listener.bind(path: path, mode: 0o600, on: loop) { _ in
          Issue.record("the wrong listener")
        }
        let copy = dup(try #require(descriptor(listeningAt: path)))
        maker.close(unlink: false)
        _ = try Listener.adopt(descriptor: copy, on: loop) { _ in
          accepted += 1
          loop.stop()
        }
        Pipe.connect(path: path, on: loop) { _ in }
      }
      #expect(accepted == 1)
    }
  }

  @Test func `a descriptor that does not listen is not adopted, and stays open`() throws {
    try withLoop { loop in
      let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
      let error = #expect(throws: LoopError.self) {
        _ = try Listener.adopt(descriptor: descriptor, on: loop) { _ in }
      }
      #expect(error?.name == "EINVAL")
      #expect(close(descriptor) == 0)
      loop.stop()
    }
  }

  @Test func `a hundred clients are all accepted`() throws {
    try withSocketPath { path in
      var accepted = 0
      try withLoop { loop in
        _ = try Listener.bind(path: path, mode: 0o600, backlog: 256, on: loop) { pipe in
          pipe.close()
          accepted += 1
          if accepted == 100 { loop.stop() }
        }
        for _ in 0..<100 { Pipe.connect(path: path, on: loop) { _ in } }
      }
      #expect(accepted == 100)
    }
  }

  @Test func `a listener may close itself when it accepts a connection`() throws {
    try withSocketPath { path in
      weak var forgotten: Listener?
      try withLoop { loop in
        var listener: Listener?
        listener = try Listener.bind(path: path, mode: 0o600, on: loop) { pipe in
          listener?.close(unlink: true)
          listener = nil
          pipe.close { loop.stop() }
        }
        forgotten = listener
        for _ in 0..<5 { Pipe.connect(path: path, on: loop) { _ in } }
      }
      #expect(forgotten == nil)
    }
  }

  /// This process's descriptor that is bound to `path`.
  private func descriptor(listeningAt path: String) -> Int32? {
    (0..<4096).first { descriptor in
      var address = sockaddr_un()
      var size = socklen_t(MemoryLayout<sockaddr_un>.size)
      let status = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
      }
      guard status == 0, address.sun_family == sa_family_t(AF_UNIX) else { return false }
      return withUnsafeBytes(of: address.sun_path) { $0.starts(with: Array(path.utf8) + [0]) }
    }
  }
}
