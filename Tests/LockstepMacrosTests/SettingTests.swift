import Testing

@Suite struct SettingTests {
  private let player = """
    struct Player {
      @ObservableState public struct State {
        @Settable public var volume: Int = 5
        var listeners = 0
        @Settable @Ephemeral var title = ""
        @Settable @Pulse var alert: String?
      }
    }
    """

  @Test func `a struct has one setting for each field under the attribute, in their order`() {
    let text = expansion(of: player).text
    for line in [
      "public enum Setting: Lockstep.FieldSetting, Lockstep.CasePathable {",
      "case volume(Int)", "case title(String)", "case alert(String?)",
      "encoder.encode(0)", "encoder.encode(2)",
      "public func apply(to state: inout State) {",
      "case .volume(let value):", "state.volume = value",
      "public var volume: Lockstep.SettableField<Setting, Int> {",
      "named: \"Player.State.Setting\"",
    ] {
      #expect(text.contains(line), "\(line)")
    }
    #expect(!text.contains("case listeners"))
  }

  @Test func `a struct without such a field has no settings`() {
    let text = expansion(of: "@ObservableState struct State {\n  var a = 1\n}").text
    #expect(!text.contains("Setting"))
  }

  @Test(arguments: [
    ("1", "Int"), ("-1", "Int"), ("1.5", "Double"), ("-0.5", "Double"), ("true", "Bool"),
    ("\"a\"", "String"),
  ])
  func `a literal shows the type of a field`(value: String, type: String) {
    let text = expansion(
      of: "@ObservableState struct State {\n  @Settable var a = \(value)\n}"
    ).text
    #expect(text.contains("case a(\(type))"))
  }

  @Test func `another initial value does not`() {
    expectComplaint(
      "@ObservableState struct State {\n  @Settable var size = Size()\n}",
      "'size' needs its type written out, which the action that sets it carries.",
      line: 2, column: 3)
  }

  @Test func `constants and ignored fields cannot be set`() {
    expectComplaint(
      "@ObservableState struct State {\n  @Settable let id: Int\n}",
      "A constant cannot be set; make it a 'var'.", line: 2, column: 3)
    expectComplaint(
      "@ObservableState struct State {\n  @Settable @Ignored var cache = 0\n}",
      "An ignored field never travels, so no action can set it.", line: 2, column: 3)
  }

  @Test func `an action that carries the settings of a state is bindable`() {
    let text = expansion(of: "@Action enum Action {\n  case set(Player.State.Setting)\n}").text
    #expect(
      text.contains("SynchronizableAction, SynchronizableScalar, CasePathable, BindableAction {"))
    #expect(text.contains("var setting: Player.State.Setting? {"))
  }

  @Test(arguments: ["set(Int)", "set(Setting)", "set(to: State.Setting)", "put(State.Setting)"])
  func `other actions are not`(item: String) {
    let text = expansion(of: "@Action enum Action {\n  case \(item)\n}").text
    #expect(!text.contains("BindableAction") && !text.contains("var setting"))
  }
}
