import Systemd
import Testing

@Suite struct WatchdogTests {
  @Test(
    arguments: [
      (["WATCHDOG_USEC": "2000000"], .seconds(1)),
      (["WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "7"], .seconds(1)),
      (["WATCHDOG_USEC": "3"], .nanoseconds(1500)),
      (["WATCHDOG_USEC": "9223372036854775807"], .microseconds(Int64.max) / 2),
      (["WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "8"], nil),
      (["WATCHDOG_PID": "7"], nil), (["WATCHDOG_USEC": "0"], nil), (["WATCHDOG_USEC": ""], nil),
      ([:], nil),
    ] as [([String: String], Duration?)])
  func `the interval of heartbeats is half the watchdog's time`(
    variables: [String: String], interval: Duration?
  ) throws {
    #expect(try Watchdog(environment: Environment(variables), pid: 7)?.interval == interval)
  }

  @Test(arguments: ["-1", "+1", "1s", " 1", "9223372036854775808", "1e6"])
  func `a time that is not a number is an error`(text: String) throws {
    let error = #expect(throws: EnvironmentError.self) {
      _ = try Watchdog(environment: ["WATCHDOG_USEC": text], pid: 7)
    }
    #expect(
      error?.description
        == "$WATCHDOG_USEC is \"\(text)\": expected a number from 0 to 9223372036854775807")
    #expect(throws: EnvironmentError.self) {
      _ = try Watchdog(environment: ["WATCHDOG_PID": text, "WATCHDOG_USEC": "1"], pid: 7)
    }
  }
}
