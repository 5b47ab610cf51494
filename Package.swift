// swift-tools-version: 6.2
import CompilerPluginSupport
import PackageDescription

let settings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  // Deliberate mistakes, for tests of the tests: not in what is released.
  .define("FAULTS", .when(configuration: .debug)),
  // So that the generic core is specialised for the feature of whoever uses it, also in a package
  // that depends on this one and is built without a flag: an action costs a quarter (Scripts/counts).
  .unsafeFlags(["-cross-module-optimization"], .when(configuration: .release)),
]

let argumentParser = Target.Dependency.product(
  name: "ArgumentParser", package: "swift-argument-parser")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let systemPackage = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let issueReporting = Target.Dependency.product(
  name: "IssueReporting", package: "xctest-dynamic-overlay")

/// An example in `Sources/Examples/NAME`: its feature as a library, a daemon (`named`) and a
/// client (`name`).
func example(_ name: String) -> [Target] {
  let (folder, feature, command) = ("Sources/Examples/\(name)", "\(name)Feature", name.lowercased())
  return [
    .target(
      name: feature, dependencies: ["Lockstep", "Values", "CBOR"], path: "\(folder)/Feature",
      swiftSettings: settings),
    .executableTarget(
      name: "\(command)d",
      dependencies: [
        .target(name: feature), "Lockstep", "LockstepServer", "EventLoop", "Values", argumentParser,
      ],
      path: "\(folder)/Daemon", swiftSettings: settings),
    .executableTarget(
      name: command,
      dependencies: [
        .target(name: feature), "EventLoop", "Lockstep", "LockstepClient", "Values",
        argumentParser,
      ],
      path: "\(folder)/Client", swiftSettings: settings),
  ]
}

/// A product of swift-syntax, which only the macros need.
func syntax(_ name: String) -> Target.Dependency {
  .product(name: name, package: "swift-syntax", condition: .when(traits: ["Macros"]))
}

/// The examples, one folder each.
let examples = ["AppShell", "Board", "Cars", "Counter", "Feed", "PrimeTime", "Todos"]

/// Targets of one floor of `Sources`, which says what they may touch. Scripts/check looks after it.
func floor(_ name: String, _ targets: [Target]) -> [Target] {
  for target in targets { target.path = "Sources/\(name)/\(target.name)" }
  return withSettings(targets)
}

/// What runs at a start, or for a report: compiled to be small, for a daemon of 10 MB.
let cold = ["Schemas", "SocketPaths", "Systemd"]

/// Targets with the settings of all our Swift.
func withSettings(_ targets: [Target]) -> [Target] {
  for target in targets where target.type != .system {
    target.swiftSettings = settings
    if cold.contains(target.name) {
      target.swiftSettings?.append(.unsafeFlags(["-Osize"], .when(configuration: .release)))
    }
  }
  return targets
}

/// Targets that are optimised also where tests are built a single time (CI): properties are computed, and
/// worlds simulated, in a fraction of the time. Assertions stay.
func tested(_ name: String, _ targets: [Target]) -> [Target] {
  let all = floor(name, targets)
  guard Context.environment["LOCKSTEP_SINGLE_BUILD"] != nil else { return all }
  for target in all where target.type == .regular {
    target.swiftSettings?.append(
      .unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug)))
  }
  return all
}

/// Pure: no system library, no lock, no clock.
let core = tested(
  "Core",
  [
    .target(name: "CBOR"),
    // An instruction of the processor, which Swift has no name for.
    .target(name: "CPrefetch"),
    .target(name: "Values", dependencies: ["CPrefetch", "CBOR"]),
    .target(
      name: "Lockstep",
      dependencies: [
        "Values", "CBOR",
        .target(name: "LockstepMacros", condition: .when(traits: ["Macros"])),
      ]),
    // The compiler plug-in, for the trait "Macros": swift-syntax takes minutes to build.
    .macro(
      name: "LockstepMacros",
      dependencies: [
        syntax("SwiftCompilerPlugin"), syntax("SwiftDiagnostics"), syntax("SwiftSyntax"),
        syntax("SwiftSyntaxBuilder"), syntax("SwiftSyntaxMacros"),
      ]),
    // JSON, and the JSON of actions: also for clients that reduce nothing.
    .target(name: "JSONCoding", dependencies: ["Values", "CBOR"]),
    .target(name: "Documents", dependencies: ["JSONCoding", "Lockstep", "Values", "CBOR"]),
    .target(name: "Wire", dependencies: ["Values", "CBOR"]),
    .target(name: "Schemas", dependencies: ["Values", "CBOR"]),
    .target(name: "Access", dependencies: ["Lockstep", "Values", "CBOR"]),
    .target(name: "Records", dependencies: ["Wire", "Lockstep", "Values", "CBOR"]),
    .target(name: "ClientCore", dependencies: ["Schemas", "Wire", "Values", "CBOR"]),
    .target(
      name: "DaemonCore",
      dependencies: ["Access", "Records", "Schemas", "Wire", "Lockstep", "Values", "CBOR"]),
  ])

/// The only code that calls libuv, SQLite and the service manager.
let system = floor(
  "System",
  [
    // The only code that calls libuv.
    .systemLibrary(name: "CLibuv", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
    .target(name: "EventLoop", dependencies: ["CLibuv"]),
    // Where daemons listen and clients look: also for clients that have a loop of their own.
    .target(name: "SocketPaths"),
    // Descriptors of files, over swift-system.
    .target(name: "Files", dependencies: [systemPackage]),
    // The only code that calls SQLite.
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .target(
      name: "Journal",
      dependencies: [
        "CSQLite", "Files", "Records", "Wire", "Lockstep", "Values", "CBOR", systemPackage,
      ]),
    // What a service manager and a service tell each other: the system, and nothing of Lockstep.
    .systemLibrary(name: "CLinux"),
    .systemLibrary(
      name: "CJemalloc", pkgConfig: "jemalloc", providers: [.apt(["libjemalloc-dev"])]),
    // The only code that knows jemalloc, which it makes the allocator of what it is linked into.
    .target(name: "CAllocator", dependencies: ["CJemalloc"]),
    .target(name: "Systemd", dependencies: ["CLinux", "Files", systemPackage]),
    // For policy files. Yams would link all of Foundation into the daemon.
    .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
  ])

/// The shell around a server.
let daemon = floor(
  "Daemon",
  [
    .target(
      name: "LockstepServer",
      dependencies: [
        "CAllocator", "CLinux", "CYAML", "EventLoop", "SocketPaths", "Files", "Systemd", "Journal",
        "Schemas", "Access", "Records", "DaemonCore", "Documents", "Wire", "Lockstep", "Values",
        "CBOR", argumentParser,
        systemPackage,
        .product(name: "CoreMetrics", package: "swift-metrics"),
        logging,
      ]),
    // Does again what a daemon has recorded: a tool, in no product.
    .executableTarget(
      name: "lockstep-replay",
      dependencies: [
        "Access", "DaemonCore", "Documents", "EventLoop", "Files", "Lockstep", "Values",
        argumentParser, systemPackage,
      ]),
    .executableTarget(
      name: "lockstepd",
      dependencies: [
        "LockstepServer", "Documents", "EventLoop", "Lockstep", "Values",
        argumentParser,
        logging,
      ]),
  ])

/// What the programs of users link, and the command line.
let client = floor(
  "Client",
  [
    // The store in one process: no event loop, no socket, no protocol.
    .target(name: "LockstepStore", dependencies: ["Lockstep", "Values", "CBOR"]),
    .target(
      name: "LockstepClient",
      dependencies: [
        "LockstepStore", "EventLoop", "SocketPaths", "Schemas", "ClientCore", "Wire", "Lockstep",
        "Values", "CBOR",
      ]),
    .target(name: "LockstepFoundation", dependencies: ["Values", "CBOR"]),
    .target(
      name: "CommandLineTool",
      dependencies: [
        "LockstepClient", "Journal", "Documents", "EventLoop", "SocketPaths", "Files", "Schemas",
        "Records", "DaemonCore", "Wire", "Lockstep", "Values", "CBOR",
        argumentParser,
        systemPackage,
      ]),
    .executableTarget(name: "lockstep", dependencies: ["CommandLineTool"]),
    // The web page of `lockstep inspect`: a program of its own, because nothing else is to link a web
    // server.
    .executableTarget(
      name: "lockstep-inspect",
      dependencies: [
        "CInspectorPage", "CommandLineTool", "EventLoop",
        .product(name: "FlyingFox", package: "FlyingFox"), argumentParser,
      ],
      exclude: ["messages.md", "pictures"]),
    .target(name: "CInspectorPage", exclude: ["Page"]),
    // The header that programs in C include: written for people, and checked against LockstepC.
    .systemLibrary(name: "CLockstep"),
    // liblockstep: mirrors for programs in C, without an event loop. Scripts/build-c builds it.
    .target(
      name: "LockstepC",
      dependencies: [
        "CLockstep", "CLinux", "SocketPaths", "ClientCore", "JSONCoding", "Schemas", "Wire",
        "Values", "CBOR",
      ]),
  ])

/// Deterministic simulation: real sessions over an invented network. In no product by itself.
let simulation = tested(
  "Testing",
  [
    .target(
      name: "Simulator",
      dependencies: [
        "Access", "Records", "ClientCore", "DaemonCore", "Wire", "Lockstep", "Documents", "Values",
        "CBOR",
      ])
  ])

/// What tests are made with, for users and for us.
let testing = floor(
  "Testing",
  [
    .target(
      name: "LockstepTesting",
      dependencies: [
        // Its `SyncTestStore` is a simulation that a test drives.
        "Simulator", "Wire", "Lockstep", "Values", "CBOR",
        .product(name: "CustomDump", package: "swift-custom-dump"),
        issueReporting,
        // A shared library: where tests run, IssueReporting looks for it, and without it prints
        // failures and lets the tests pass.
        .product(name: "IssueReportingTestSupport", package: "xctest-dynamic-overlay"),
      ]),
    .executableTarget(
      name: "Simulate",
      dependencies: ["Simulator", "DaemonCore", "Lockstep", "Values", argumentParser]),
    // Real daemons and real clients; Scripts/test says where the daemon is.
    .executableTarget(
      name: "TestClient",
      dependencies: ["LockstepClient", "Documents", "Wire", "Values", "CBOR"]),
  ])

/// Measurements, and what lives beside its documentation or its tests.
let others: [Target] = [
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
  .executableTarget(
    name: "OptimismBenchmark",
    dependencies: [
      "LockstepClient", "LockstepServer", "CBOR", "Documents", "EventLoop", "Lockstep", "Values",
      logging,
    ],
    path: "Sources/Benchmarks/OptimismBenchmark", swiftSettings: settings),
  .executableTarget(
    name: "Monitor",
    dependencies: [
      "LockstepClient", "Documents", "EventLoop", "Wire", "Values",
      argumentParser,
    ],
    path: "Sources/Examples/Monitor", swiftSettings: settings),
  // For Scripts/systemd-box: a service that tries `Systemd` under a real manager, and what tries
  // to break out of the daemon's sandbox.
  .executableTarget(
    name: "SystemdProbe", dependencies: ["Systemd"], path: "Tests/SystemdProbe",
    swiftSettings: settings),
  .executableTarget(name: "SandboxProbe", path: "Tests/SandboxProbe"),
  // A daemon as users write theirs, so without our settings: for tests of the libraries. Scripts/counts
  // builds it in a package of its own.
  .executableTarget(
    name: "TypedCounter", dependencies: ["LockstepServer", "Lockstep"], path: "Tests/TypedCounter"),
]

/// Tests of the macros. A bundle with a test that links a macro is built as the compiler's own plug-ins are,
/// and with it, a second time, every module that any test uses: so it is one of its own (Scripts/test).
let macroTests = withSettings([
  .testTarget(
    name: "LockstepMacrosTests",
    dependencies: [
      "LockstepMacros", syntax("SwiftDiagnostics"), syntax("SwiftParser"), syntax("SwiftSyntax"),
      syntax("SwiftSyntaxBuilder"), syntax("SwiftSyntaxMacroExpansion"),
      syntax("SwiftSyntaxMacros"), syntax("SwiftSyntaxMacrosGenericTestSupport"),
    ])
])

let tests = withSettings([
  .testTarget(name: "CBORTests", dependencies: ["CBOR"], exclude: ["cross_check.py"]),
  .testTarget(name: "ValuesTests", dependencies: ["Values", "CBOR"]),
  .testTarget(name: "LockstepTests", dependencies: ["Lockstep", "Values", "CBOR"]),
  .testTarget(
    name: "LockstepCoreTests",
    dependencies: ["LockstepTesting", "Lockstep", "Values", "CBOR"]),
  .testTarget(
    name: "LockstepTestingTests",
    dependencies: [
      "LockstepTesting", "Lockstep", "Values", "CBOR",
      issueReporting,
    ]),
  .testTarget(
    name: "LockstepFoundationTests", dependencies: ["LockstepFoundation", "Values", "CBOR"]),
  .testTarget(
    name: "WireTests", dependencies: ["Wire", "Documents", "Lockstep", "Values", "CBOR"]),
  .testTarget(
    name: "DocumentsTests", dependencies: ["Documents", "Schemas", "Lockstep", "Values", "CBOR"]),
  .testTarget(
    name: "CommandLineToolTests",
    dependencies: [
      "CommandLineTool", "Documents", "EventLoop", "SocketPaths", "Journal", "LockstepClient",
      "Records", "Wire", "Lockstep", "Values", "CBOR",
      argumentParser,
    ]),
  .testTarget(
    name: "SessionsTests",
    dependencies: [
      "BoardFeature", "Schemas", "Access", "Records", "ClientCore", "DaemonCore", "Documents",
      "Wire", "Lockstep", "Values", "CBOR",
    ]),
  .testTarget(
    name: "SimulatorTests",
    dependencies: [
      "Simulator", "LockstepTesting", "DaemonCore", "Lockstep", "Values", "CBOR",
    ]),
  .testTarget(name: "EventLoopTests", dependencies: ["EventLoop"]),
  .testTarget(name: "SocketPathsTests", dependencies: ["SocketPaths"]),
  .testTarget(name: "SystemdTests", dependencies: ["Systemd"]),
  .testTarget(
    name: "JournalTests",
    dependencies: [
      "Journal", "CSQLite", "Records", "DaemonCore", "Wire", "Lockstep", "Values", "CBOR",
    ]),
  .testTarget(
    name: "LockstepServerTests",
    dependencies: [
      "CAllocator", "CJemalloc", "LockstepServer", "Journal", "EventLoop", "Documents", "Lockstep",
      "Access", "Records", "DaemonCore", "Values", "Wire", "CBOR", logging,
    ]),
  .testTarget(
    name: "LockstepClientTests",
    dependencies: [
      "LockstepClient", "LockstepStore", "LockstepServer", "EventLoop", "Access", "ClientCore",
      "DaemonCore",
      "Schemas", "Wire", "Lockstep",
      "Values",
      "CBOR", logging,
    ]),
  .testTarget(
    name: "ExamplesTests",
    dependencies: examples.map { .target(name: "\($0)Feature") }
      + ["LockstepStore", "LockstepTesting", "Lockstep", "Values", "CBOR"]),
  .testTarget(
    name: "ProcessTests",
    dependencies: [
      "TestClient", "LockstepClient", "Journal", "EventLoop", "Documents", "DaemonCore", "Wire",
      "Lockstep", "Values", "CBOR",
    ]
      + examples.flatMap { example -> [Target.Dependency] in
        let command = example.lowercased()
        return ["\(example)Feature", "\(command)d", "\(command)"].map { .target(name: $0) }
      }),
])

let package = Package(
  name: "lockstep",
  products: [
    // Each library comes with the modules whose types its users meet.
    .library(name: "Lockstep", targets: ["Lockstep", "Values", "CBOR"]),
    .library(name: "LockstepStore", targets: ["LockstepStore", "Lockstep", "Values", "CBOR"]),
    .library(
      name: "LockstepClient",
      targets: [
        "LockstepClient", "LockstepStore", "ClientCore", "Documents", "Lockstep", "Schemas", "Wire",
        "Values", "CBOR",
      ]),
    .library(
      name: "LockstepServer",
      targets: [
        "LockstepServer", "Access", "DaemonCore", "Documents", "EventLoop", "Lockstep", "Values",
      ]),
    .library(name: "LockstepFoundation", targets: ["LockstepFoundation", "Values", "CBOR"]),
    .library(name: "LockstepTesting", targets: ["LockstepTesting"]),
    .library(name: "LockstepC", type: .dynamic, targets: ["LockstepC"]),
    .executable(name: "lockstep", targets: ["lockstep"]),
    .executable(name: "lockstep-inspect", targets: ["lockstep-inspect"]),
    .executable(name: "lockstepd", targets: ["lockstepd"]),
  ],
  traits: [
    .default(enabledTraits: ["Macros"]),
    .trait(name: "Macros", description: "@ObservableState and @Action, which need swift-syntax"),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/swiftlang/swift-syntax", "603.0.0"..<"604.0.0"),
    // For the inspector alone: HTTP and WebSockets on loopback.
    .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
    // For tests of features: readable differences, reported to whatever runs the test.
    .package(url: "https://github.com/pointfreeco/swift-custom-dump", from: "1.7.3"),
    .package(url: "https://github.com/pointfreeco/xctest-dynamic-overlay", from: "1.13.1"),
  ],
  targets: core + system + daemon + client + simulation + testing + others
    + (Context.environment["LOCKSTEP_MACRO_TESTS"] == nil ? tests : macroTests)
    + examples.flatMap(example)
)
