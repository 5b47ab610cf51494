import Values
import Wire

extension Path {
  /// The path of a query's argument, a JSON Pointer.
  init(argument: String, of report: String) throws(ReportError) {
    guard let path = Path(pointer: argument) else {
      throw ReportError(
        .malformed, "\(report): \"\(argument.prefix(bytes: 80))\" is no JSON Pointer")
    }
    self = path
  }
}
