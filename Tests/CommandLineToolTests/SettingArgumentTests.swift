import CBOR
import Lockstep
import Testing
import Values

@testable import CommandLineTool

/// The command line with a daemon whose feature has fields that can be set, and requests.
@Suite struct SettingArgumentTests {
  struct Player: Reducer {
    @ObservableState struct State: Equatable {
      @Settable var volume = 5
      @Settable var title: String?
      @Settable var ratio = 0.5
      var playlist = Loadable<[String], String>()
    }

    @Action enum Action: Equatable {
      case stop
      case set(State.Setting)
      case playlist(LoadableAction<[String], String>)
    }

    var body: some Reducer<State, Action> { BindingReducer() }
  }

  /// Not in the attribute: there the compiler does not see the members that a macro makes.
  static let sent: [([String], Player.Action)] = [
    (["set.volume", "7"], .set(.volume(7))), (["set.volume", " -7"], .set(.volume(-7))),
    (["set.title", "a b"], .set(.title("a b"))), (["set.title", "null"], .set(.title(nil))),
    (["set.ratio", "0.25"], .set(.ratio(0.25))),
    ([#"{"set": {"volume": 7}}"#], .set(.volume(7))),
    (["playlist.load"], .playlist(.load)), (["playlist.cancel"], .playlist(.cancel)),
  ]

  @Test(arguments: sent)
  func `a field is set, and a request begun, by name`(
    _ words: [String], _ action: Player.Action
  ) throws {
    let payload = try Send.payload(words, schema: Player.schema)
    let sent = try CBORDecoder.read(payload) { (decoder) throws(CBORError) in
      try Player.Action(from: &decoder, seed: .unseeded)
    }
    #expect(sent == action)
    if !words[0].hasPrefix("{") { #expect(words[0] == action.name) }
  }

  @Test(arguments: [
    (
      ["set.loudness", "7"],
      "there is no action \"set.loudness\"; under set there are: ratio, title, volume."
    ),
    (["set.volume", "x"], "set.volume carries Int, and 'x' is not JSON for one."),
    (["set.volume"], "set.volume needs more: 'set.volume <Int>'."),
  ])
  func `other fields and values are refused with the alternatives`(
    _ words: [String], _ text: String
  ) {
    let failure = #expect(throws: Failure.self) {
      try Send.payload(words, schema: Player.schema)
    }
    #expect(failure?.message == text)
  }
}
