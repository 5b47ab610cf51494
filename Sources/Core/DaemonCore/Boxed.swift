/// A value that few have, in memory of its own: none is taken while there is none. A value like any other: a
/// copy is made when it is changed and another box has it.
struct Boxed<Value: Sendable>: Sendable {
  private var only: [Value] = []

  init() {}

  var isEmpty: Bool { @inline(__always) get { only.isEmpty } }

  var value: Value? {
    get { only.first }
    set { if let newValue { only = [newValue] } else { only = [] } }
  }

  /// The value, to be changed where it is; one is made if there is none.
  subscript(orNew new: @autoclosure () -> Value) -> Value {
    get { only.first ?? new() }
    _modify {
      if only.isEmpty { only.append(new()) }
      yield &only[0]
    }
  }
}
