// swift-tools-version: 6.2
import PackageDescription

// A user's package: Scripts/test-outside copies it elsewhere, and tells it where Lockstep is.
let package = Package(
  name: "todos",
  dependencies: [.package(name: "lockstep", path: "LOCKSTEP")],
  targets: [
    .target(
      name: "TodosFeature", dependencies: [.product(name: "Lockstep", package: "lockstep")]),
    .executableTarget(
      name: "todosd",
      dependencies: ["TodosFeature", .product(name: "LockstepServer", package: "lockstep")]),
    .executableTarget(
      name: "todos",
      dependencies: ["TodosFeature", .product(name: "LockstepClient", package: "lockstep")]),
    // This is enough for failures of a `TestStore` to fail a test.
    .testTarget(
      name: "TodosTests",
      dependencies: ["TodosFeature", .product(name: "LockstepTesting", package: "lockstep")]),
  ]
)
