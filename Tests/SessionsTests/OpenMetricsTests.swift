import DaemonCore
import Testing

@Suite struct OpenMetricsTests {
  @Test func `each kind of family has its lines`() {
    #expect(OpenMetrics.family("a", .gauge, -1) == "# TYPE a gauge\na -1\n")
    #expect(
      OpenMetrics.family("a", .counter, UInt64.max)
        == "# TYPE a counter\na_total 18446744073709551615\n")
    #expect(
      OpenMetrics.series("a", .summary, labels: #"{b="c"}"#, value: "0.5", count: 2)
        == "a_count{b=\"c\"} 2\na_sum{b=\"c\"} 0.5\n")
  }

  @Test func `names are made valid, and labels escaped`() {
    #expect(OpenMetrics.name("a.b-é_1") == "a_b___1")
    #expect(OpenMetrics.labels([]) == "")
    #expect(
      OpenMetrics.labels([("a b", #"x"y\z"#), ("c", "1\n2")]) == #"{a_b="x\"y\\z",c="1\n2"}"#)
    // As characters, neither is the one that is escaped.
    #expect(OpenMetrics.labels([("a", "1\r\n\"\u{301}")]) == "{a=\"1\r\\n\\\"\u{301}\"}")
  }
}
