import ArgumentParser
import CarsFeature
import LockstepClient

/// Shows the cars of `carsd`, and reloads them.
@main struct CarsClient: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cars", abstract: "See the cars of carsd, and load them anew.",
    subcommands: [Watch.self, Reload.self, Show.self, View.self])
}

/// The daemon to talk to.
struct DaemonAddress: ParsableArguments {
  @Option(help: ArgumentHelp("The daemon's socket.", valueName: "path"))
  var socket: String?

  /// Connect, do something, and say goodbye.
  func with(_ body: (MirrorStore<Cars>) async throws -> Void) async throws {
    let cars = try await MirrorStore<Cars>.connect(.init(socket: socket, label: "cars"))
    do { try await body(cars) } catch {
      await cars.connection.finish()
      throw error
    }
    await cars.connection.finish()
  }
}

struct Watch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the cars, and each change of them, until interrupted.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { cars in
      for await state in cars.changes {
        let names = state.carList.map(\.fullName).joined(separator: ", ")
        show("\(state.loading ? "loading" : "ready"): \(names.isEmpty ? "no cars" : names)")
      }
    }
  }
}

struct Reload: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Begin to load the cars anew; 'cars watch' shows how it goes on.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { try await $0.send(.reloadCarList) }
  }
}

struct Show: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the car in a row, if there is one.")

  @Argument(help: "The number of the row, from 0.")
  var row: Int

  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { cars in
      let state = cars.state
      guard state.carList.indices.contains(row) else {
        return print("There is no row \(row): the list has \(state.carList.count), from row 0.")
      }
      print(state.carList[row].fullName)
    }
  }
}

struct View: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show a list that is loaded anew whenever a line is entered.")
  @OptionGroup var daemon: DaemonAddress

  func run() async throws {
    try await daemon.with { cars in
      let view = CarListView()
      await view.bind(to: cars)
      await view.run()
    }
  }
}

extension CarModel {
  var fullName: String { "\(brand) \(name)" }
}
