import CommandLineTool

@main
enum Main {
  static func main() { LockstepProgram.main() }
}
