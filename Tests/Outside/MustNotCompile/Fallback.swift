import Lockstep

// Scripts/test-outside compiles this beside a feature, with warnings as errors, and expects each error that
// is named here, in the line below, and no other.

// error: A case that a newer version adds would disconnect older peers: mark one '@Fallback', or say '@ObservableState(frozen: true)' if none will be added.
@ObservableState public enum Mood: Equatable {
  case calm, wild
}

public struct Owner {
  // error: 'Secret' is private inside another type, where the code of the macro does not see it: make it fileprivate.
  @ObservableState private struct Secret: Equatable {
    var word = ""
  }
}
