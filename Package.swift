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
  targets: [
    // Pure: no system library, no lock, no clock. Scripts/check keeps it so.
    .target(name: "CBOR", swiftSettings: settings),
    .target(name: "Values", dependencies: ["CBOR"], swiftSettings: settings),
    .target(name: "Lockstep", dependencies: ["Values", "CBOR"], swiftSettings: settings),
    .target(
      name: "Documents", dependencies: ["Lockstep", "Values", "CBOR"], swiftSettings: settings),
    .target(name: "Wire", dependencies: ["Values", "CBOR"], swiftSettings: settings),

    // The only code that calls libuv.
    .systemLibrary(name: "CLibuv", pkgConfig: "libuv", providers: [.apt(["libuv1-dev"])]),
    .target(name: "EventLoop", dependencies: ["CLibuv"], swiftSettings: settings),

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
    .testTarget(name: "EventLoopTests", dependencies: ["EventLoop"], swiftSettings: settings),
  ]
)
