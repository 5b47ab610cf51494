import CommandLineTool

@main
enum Main {
  static func main() async { await LockstepProgram.main() }
}
