import CommandLineTool
import EventLoop
import FlyingFox
import FlyingSocks
import Foundation
import Synchronization

/// Serves the page on loopback, to browsers that have its address.
///
/// The address has a secret token, as Jupyter's has: other users of the machine can reach the port. The
/// names of the host that a browser may have used are checked, so that no page of the web that
/// resolves its own name to loopback gets in.
struct PageServer {
  private let options: InspectorOptions
  private let token = Token.random()

  init(_ options: InspectorOptions) { self.options = options }

  /// Serve, and write the address when that has begun, until the process ends. Throws if the port is
  /// taken.
  func run() async throws {
    let site = Site(token: token, options: options)
    let server = HTTPServer(
      address: try .inet(ip4: "127.0.0.1", port: options.port), logger: .disabled,
      handler: ClosureHTTPHandler { request in await site.response(to: request) })
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        do {
          try await server.run()
        } catch {
          var reason = "\(error)"
          if case SocketError.failed(_, _, let message) = error { reason = message }
          throw InspectorFailure(
            "cannot serve on port \(options.port): \(reason). Choose another with --port")
        }
      }
      group.addTask {
        try await server.waitUntilListening()
        guard case .ip4(_, let port)? = await server.listeningAddress else {
          throw InspectorFailure("the port is not known")
        }
        site.begin(on: port)
        try InspectorAddress.tell("http://127.0.0.1:\(port)/\(token)/", options)
      }
      for try await _ in group {}
    }
  }
}

private enum Token {
  /// 128 random bits.
  static func random() -> String {
    var generator = SystemRandomNumberGenerator()
    return (0..<4).map { _ in
      let part = String(UInt32.random(in: 0...UInt32.max, using: &generator), radix: 16)
      return String(repeating: "0", count: 8 - part.count) + part
    }.joined()
  }
}

/// What is served below the token.
private final class Site: Sendable {
  private let token: String
  private let options: InspectorOptions
  private let port = Mutex<UInt16>(0)

  init(token: String, options: InspectorOptions) {
    self.token = token
    self.options = options
  }

  func begin(on port: UInt16) { self.port.withLock { $0 = port } }

  func response(to request: HTTPRequest) async -> HTTPResponse {
    let port = port.withLock { $0 }
    let hosts = ["127.0.0.1:\(port)", "localhost:\(port)"]
    guard let host = request.headers[.host], hosts.contains(host) else {
      return refusal(.forbidden, "This is not the name by which the page is served.")
    }
    let parts = request.target.path().split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].isEmpty, parts[1] == token else {
      return refusal(.notFound, "There is nothing here. Use the whole address of the inspector.")
    }
    guard request.method == .GET else {
      return refusal(.methodNotAllowed, "The page is only read.")
    }
    if parts[2] == "socket" { return await socket(request, hosts) }
    guard let file = PageFile(named: parts[2].isEmpty ? "index.html" : String(parts[2])) else {
      return refusal(.notFound, "The page has no such file.")
    }
    var headers = protection
    headers[.contentType] = file.type
    return HTTPResponse(statusCode: .ok, headers: headers, body: Data(file.bytes))
  }

  /// A socket, for a page of ours: a browser says of which page it is.
  private func socket(_ request: HTTPRequest, _ hosts: [String]) async -> HTTPResponse {
    guard let origin = request.headers[HTTPHeader("Origin")],
      hosts.contains(where: { origin == "http://\($0)" })
    else {
      return refusal(.forbidden, "This is not the page's own connection.")
    }
    do {
      return try await PageSocket(options).response(to: request)
    } catch {
      return refusal(.badRequest, "This is no WebSocket.")
    }
  }

  private func refusal(_ status: HTTPStatusCode, _ text: String) -> HTTPResponse {
    var headers = protection
    headers[.contentType] = "text/plain; charset=utf-8"
    return HTTPResponse(statusCode: status, headers: headers, body: Data("\(text)\n".utf8))
  }

  /// What the browser is to refuse: everything that the page does not bring itself.
  private var protection: HTTPHeaders {
    let port = port.withLock { $0 }
    let sockets = "ws://127.0.0.1:\(port) ws://localhost:\(port)"
    return [
      .cacheControl: "no-store",
      HTTPHeader("Content-Security-Policy"):
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        + "connect-src 'self' \(sockets); base-uri 'none'; form-action 'none'; "
        + "frame-ancestors 'none'",
      HTTPHeader("Cross-Origin-Opener-Policy"): "same-origin",
      HTTPHeader("Cross-Origin-Resource-Policy"): "same-origin",
      HTTPHeader("Referrer-Policy"): "no-referrer",
      HTTPHeader("X-Content-Type-Options"): "nosniff",
    ]
  }
}
