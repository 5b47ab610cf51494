// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
]

let package = Package(
  name: "lockstep",
  platforms: [.macOS(.v15)],
  products: [
    // Each library comes with the modules whose types its users meet.
    .library(
      name: "LockstepClient",
      targets: ["LockstepClient", "Documents", "Lockstep", "Sessions", "Wire", "Values", "CBOR"]),
    .library(
      name: "LockstepServer",
      targets: ["LockstepServer", "Documents", "EventLoop", "Lockstep", "Sessions", "Values"]),
    .library(name: "LockstepTesting", targets: ["LockstepTesting"]),
    .executable(name: "lockstep", targets: ["CommandLineTool"]),
    .executable(name: "lockstepd", targets: ["lockstepd"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
  ],
  targets: [
    // Pure: no system library, no lock, no clock. Scripts/check keeps it so.
    .target(name: "CBOR", swiftSettings: settings),
    .target(name: "Values", dependencies: ["CBOR"], swiftSettings: settings),

    .target(name: "Lockstep", dependencies: ["Values", "CBOR"], swiftSettings: settings),
    .target(
      name: "Documents", dependencies: ["Lockstep", "Values", "CBOR"], swiftSettings: settings),
    .target(name: "Wire", dependencies: ["Values", "CBOR"], swiftSettings: settings),
    .target(
      name: "Sessions", dependencies: ["Wire", "Lockstep", "Values", "CBOR"],
      swiftSettings: settings),

    // The only code that calls libuv.
    .systemLibrary(name: "CLibuv", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
    .target(name: "EventLoop", dependencies: ["CLibuv"], swiftSettings: settings),
    .target(
      name: "LockstepServer",
      dependencies: [
        "EventLoop", "Sessions", "Wire", "Lockstep", "Values",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: settings),
    .target(
      name: "LockstepClient",
      dependencies: ["EventLoop", "Sessions", "Wire", "Lockstep", "Values", "CBOR"],
      swiftSettings: settings),
    .executableTarget(
      name: "lockstepd",
      dependencies: [
        "LockstepServer", "Documents", "EventLoop", "Sessions", "Lockstep", "Values",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: settings),

    .executableTarget(
      name: "CommandLineTool",
      dependencies: [
        "LockstepClient", "Documents", "EventLoop", "Sessions", "Wire", "Lockstep", "Values",
        "CBOR",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: settings),

    .executableTarget(
      name: "Monitor",
      dependencies: [
        "LockstepClient", "Documents", "EventLoop", "Sessions", "Wire", "Values",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Sources/Examples/Monitor", swiftSettings: settings),

    // Deterministic simulation: real sessions over an invented network.
    .target(
      name: "LockstepTesting",
      dependencies: ["Sessions", "Wire", "Lockstep", "Documents", "Values", "CBOR"],
      swiftSettings: settings),
    .executableTarget(
      name: "Simulate",
      dependencies: [
        "LockstepTesting", "Sessions", "Lockstep", "Values",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: settings),

    // The benchmark's other side: Scripts/benchmark. In C, to be cheaper than any server.
    .executableTarget(
      name: "limit-server", dependencies: ["CLibuv"], path: "Sources/Benchmarks/limit-server"),
    .executableTarget(
      name: "LoadGenerator", path: "Sources/Benchmarks/LoadGenerator",
      cSettings: [.define("_GNU_SOURCE")]),

    .executableTarget(
      name: "ValuesBenchmark",
      dependencies: [
        "Values", "CBOR", .product(name: "HashTreeCollections", package: "swift-collections"),
      ],
      path: "Sources/Benchmarks/ValuesBenchmark", swiftSettings: settings),

    .testTarget(
      name: "CBORTests", dependencies: ["CBOR"], exclude: ["cross_check.py"],
      swiftSettings: settings),
    .testTarget(name: "ValuesTests", dependencies: ["Values", "CBOR"], swiftSettings: settings),
    .testTarget(
      name: "WireTests", dependencies: ["Wire", "Documents", "Lockstep", "Values", "CBOR"],
      swiftSettings: settings),
    .testTarget(
      name: "DocumentsTests", dependencies: ["Documents", "Lockstep", "Values", "CBOR"],
      swiftSettings: settings),
    .testTarget(
      name: "CommandLineToolTests",
      dependencies: [
        "CommandLineTool", "Documents", "Lockstep", "Values", "CBOR",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: settings),
    .testTarget(
      name: "SessionsTests",
      dependencies: [
        "Sessions", "LockstepTesting", "Documents", "Wire", "Lockstep", "Values", "CBOR",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "SimulatorTests",
      dependencies: ["LockstepTesting", "Sessions", "Lockstep", "Values"],
      swiftSettings: settings),
    .testTarget(name: "EventLoopTests", dependencies: ["EventLoop"], swiftSettings: settings),
    // Real daemons and real clients; Scripts/test says where the daemon is.
    .executableTarget(
      name: "TestClient",
      dependencies: ["LockstepClient", "Documents", "Sessions", "Wire", "Values", "CBOR"],
      swiftSettings: settings),
    .testTarget(
      name: "ProcessTests",
      dependencies: [
        "TestClient", "LockstepClient", "Documents", "Sessions", "Wire", "Lockstep", "Values",
        "CBOR",
      ],
      exclude: ["lockstep_client.py"], swiftSettings: settings),
  ]
)
