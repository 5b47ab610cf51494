// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "groceries",
  dependencies: [.package(name: "lockstep", path: "LOCKSTEP")],
  targets: [
    // The daemon, the clients and the tests share the feature, so it is a library.
    .target(
      name: "GroceriesFeature",
      dependencies: [.product(name: "Lockstep", package: "lockstep")]),
    .executableTarget(
      name: "groceriesd",
      dependencies: ["GroceriesFeature", .product(name: "LockstepServer", package: "lockstep")]),
    .executableTarget(
      name: "groceries",
      dependencies: ["GroceriesFeature", .product(name: "LockstepClient", package: "lockstep")]),
    .testTarget(
      name: "GroceriesTests",
      dependencies: ["GroceriesFeature", .product(name: "LockstepTesting", package: "lockstep")]),
  ]
)
