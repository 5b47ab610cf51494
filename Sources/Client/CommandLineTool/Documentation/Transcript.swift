/// Commands and their answers with which transcripts of several commands begin. A test runs them.
enum Transcript {
  /// Three changes of an empty document.
  static let lamps = """
      $ lockstep set /lamps '{"hall": false, "porch": false}'
      revision 1
      $ lockstep set /lamps/hall true
      revision 2
      $ lockstep remove /lamps/porch
      revision 3
    """
}
