import Lockstep
import Testing

@Suite struct SettingTests {
  @ObservableState struct Player: Equatable {
    @Settable var volume: Int = 5
    var listeners = 0
    @Settable var name = "radio"
    @Settable var `default`: [String] = []
    @Settable @Pulse var alert: String?
    @Settable private(set) var rate: Double = 1
  }

  @Action enum PlayerAction: Equatable {
    case join
    case adjust(Player.Setting)
  }

  @Test func `a setting travels as the number of its field among the settable ones, and the value`()
    throws
  {
    let expected: [(Player.Setting, String)] = [
      (.volume(7), "820007"), (.name("a"), "82016161"), (.default(["b"]), "8202816162"),
      (.alert("c"), "82036163"), (.alert(nil), "8203f7"), (.rate(0.5), "8204f93800"),
    ]
    for (setting, form) in expected {
      #expect(hex(bytes(setting)) == form)
      #expect(try decoded(Player.Setting.self, bytes(setting)) == setting)
      #expect(
        try decoded(PlayerAction.self, bytes(PlayerAction.adjust(setting))) == .adjust(setting))
    }
    #expect(throws: CBORError(.unknownCase(5), at: 0)) {
      try decoded(Player.Setting.self, unhex("82 05 00"))
    }
  }

  @Test func `a setting sets its field alone`() {
    var player = Player()
    let settings: [Player.Setting] = [.volume(7), .name("tv"), .default(["x"]), .rate(2)]
    for setting in settings { setting.apply(to: &player) }
    #expect(player.volume == 7 && player.name == "tv" && player.default == ["x"])
    #expect(player.rate == 2 && player.listeners == 0)
    Player.Setting.alert("beep").apply(to: &player)
    Player.Setting.alert("beep").apply(to: &player)
    #expect(player.alert == "beep" && player.$alert.count == 2)
  }

  @Test func `an action is named by its field`() {
    #expect(PlayerAction.adjust(.volume(7)).name == "adjust.volume")
    #expect(PlayerAction.adjust(.default([])).name == "adjust.default")
  }

  @Test func `settings are equal when they set the same field to the same bytes`() {
    #expect(Player.Setting.name("a") == .name("a") && .name("a") != Player.Setting.name("b"))
    #expect(Player.Setting.name("\u{e9}") != .name("e\u{301}"))
    #expect(Player.Setting.rate(.nan) == .rate(.nan) && Player.Setting.volume(1) != .rate(1))
  }

  @Test func `a field's name leads to its property and its setting`() {
    let fields = Player.Setting.allFields
    #expect(fields.volume.property == \Player.volume)
    #expect(fields.volume.setting(3) == .volume(3) && fields.alert.setting(nil) == .alert(nil))
    #expect(Player.Setting.volume(3)[case: \.volume] == 3)
  }

  @Test func `a schema shows the settings as cases of an action`() {
    var schema = SchemaBuilder()
    _ = PlayerAction.schemaKind(in: &schema)
    #expect(
      schema.types["SettingTests.Player.Setting"]
        == .enumeration([
          .init(0, "volume", [.init(1, "_0", .integer)]),
          .init(1, "name", [.init(1, "_0", .text)]),
          .init(2, "default", [.init(1, "_0", .array(.text))]),
          .init(3, "alert", [.init(1, "_0", .optional(.text))]),
          .init(4, "rate", [.init(1, "_0", .double)]),
        ]))
  }
}
