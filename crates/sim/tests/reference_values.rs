//! Values that a correct TCP must reproduce, by packet simulation.

mod common;

use common::{flow, run};

const MSS: u64 = 1448;

/// A wire of 100 ms without a rate limit: only windows matter.
const LONG_WIRE: &str = "
[[path.down]]
stage = \"delay\"
delay_ms = 50
[[path.up]]
stage = \"delay\"
delay_ms = 50
[[flow]]
kind = \"bulk\"
window_bytes = 1000000000
cwnd.slow_start_limit_segments = 0
ack.delayed_segments = 1
rto.min_ms = 1000
";

/// RFC 6928, RFC 5681: IW10, no delayed acknowledgements, no loss: 10, 30, 70, … segments after
/// k round trips.
#[test]
fn slow_start_doubles_every_round_trip_from_ten_segments() {
    for (round, segments) in (1..).zip([10, 30, 70, 150, 310, 630, 1270u64]) {
        // One round trip of handshake; data of round k arrives half a round trip after it was sent.
        let seconds = 0.1 + 0.1 * f64::from(round) - 0.01;
        let duration = format!("run.duration_s={seconds:.3}");
        let delivered = flow(LONG_WIRE, &[&duration]).bytes_delivered;
        assert_eq!(delivered, segments * MSS, "after {round} round trips");
    }
}

/// An application that writes three parts of three segments: each arrives half a round trip later,
/// the first one after the round trip of the handshake.
#[test]
fn an_application_writes_at_given_times() {
    let sets = ["flow.0.kind=file", "flow.0.size_bytes=13032", "flow.0.opened_by=sender"];
    let delivered = |seconds: &str| {
        let duration = format!("run.duration_s={seconds}");
        let times = "flow.0.write_times_s=0, 0.3, 1";
        flow(LONG_WIRE, &[sets[0], sets[1], sets[2], times, &duration]).bytes_delivered
    };
    let seen = ["0.149", "0.151", "0.349", "0.351", "1.049", "1.051"].map(delivered);
    assert_eq!(seen, [0, 4344, 4344, 8688, 8688, 13_032]);
}

/// At the end of its time an application completes the current write; until then it writes whatever
/// there is room for.
#[test]
fn the_last_write_is_completed() {
    let sets = ["flow.0.duration_s=1", "run.duration_s=60", "flow.0.window_bytes=100000"];
    let delivered =
        |write: &str| flow(LONG_WIRE, &[sets[0], sets[1], sets[2], write]).bytes_delivered;
    let plain = flow(LONG_WIRE, &sets).bytes_delivered;
    for bytes in [1000_u64, 300_000, 7_000_000] {
        let whole = delivered(&format!("flow.0.write_bytes={bytes}"));
        assert_eq!(whole, plain.next_multiple_of(bytes), "{bytes} after {plain}");
    }
    assert_ne!(plain % 300_000, 0);
}

/// RFC 5681 (2) as BSD implements it, one segment per acknowledgement, with delayed
/// acknowledgements of every second segment: growth by a half.
#[test]
fn slow_start_with_delayed_acks_and_byte_counting_off_grows_by_half() {
    let sets = ["flow.0.cwnd.slow_start_limit_segments=1", "flow.0.ack.delayed_segments=2"];
    for (round, segments) in (1..).zip([10, 25, 47, 80u64]) {
        let seconds = 0.1 + 0.1 * f64::from(round) - 0.01;
        let duration = format!("run.duration_s={seconds:.3}");
        let delivered = flow(LONG_WIRE, &[sets[0], sets[1], &duration]).bytes_delivered / MSS;
        // Odd segments wait for the timer, which blurs later rounds.
        assert!(delivered.abs_diff(segments) <= 1 + segments / 20, "{delivered} in {round}");
    }
}

/// RFC 9438 5.1 table 1: average windows with one loss in 1/p packets, RTT 0.1 s, within 10 % (20 %
/// at 1e-2, where time-outs and whole segments matter).
#[test]
fn average_windows_of_cubic_and_reno() {
    let table =
        [(100, 12.0, 12.0), (1_000, 38.0, 38.0), (10_000, 187.0, 120.0), (100_000, 1054.0, 379.0)];
    let mut report = String::new();
    let mut failed = false;
    for (period, cubic, reno) in table {
        for (name, published) in [("cubic", cubic), ("reno", reno)] {
            let window = average_window(name, period);
            let error = window / published - 1.0;
            let bound = if period == 100 { 0.2 } else { 0.1 };
            failed |= error.abs() > bound;
            report += &format!(
                "{name} 1/{period}: {window:.1}, published {published} ({:+.1} %)\n",
                error * 100.0
            );
        }
    }
    assert!(!failed, "{report}");
}

/// Mean window in segments after the effect of the start has faded: the segments that arrive per
/// round trip.
fn average_window(congestion: &str, period: u64) -> f64 {
    let text = format!("{LONG_WIRE}\n[[path.down]]\nstage = \"loss\"\nperiod = {period}\n");
    let delivered = |seconds: u64| {
        let congestion = format!("flow.0.congestion=\"{congestion}\"");
        let duration = format!("run.duration_s={seconds}");
        flow(&text, &[&congestion, &duration]).bytes_delivered as f64
    };
    // Without a queue or a rate limit, the first slow start ends at half the distance to the first
    // loss: the effect of that takes a while to fade.
    let (warm_up, end) = (150, 650);
    (delivered(end) - delivered(warm_up)) / MSS as f64 * 0.1 / (end - warm_up) as f64
}

/// Linux, commit 25c1a9ca53db: a download over 50 Mb/s and 150 ms with a buffer of 1 BDP, 619
/// packets of 1,514 bytes. Slow start ended at cwnd 516 by the delay test before the commit, and at
/// 632 by the ACK train with it; within 3 %, as the receiver's acknowledgements are not known.
#[test]
fn slow_start_ends_where_it_did_in_linux_before_and_since_6_14() {
    let text = "
path.down = [
  { stage = \"link\", rate_mbps = 50, queue_packets = 619 },
  { stage = \"delay\", delay_ms = 75 },
]
path.up = [{ stage = \"delay\", delay_ms = 75 }]
[run]
duration_s = 1.5
[[flow]]
kind = \"bulk\"
profile = \"linux-6.1\"
window_bytes = 100000000
options.header_bytes = 66
";
    for (version, published, reason) in
        [("hystart-5.16", 516.0, "delay"), ("hystart-6.14", 632.0, "ack_train")]
    {
        for acknowledgements in ["flow.0.ack.delayed_segments=1", "flow.0.ack.delayed_segments=2"] {
            let slow_start = format!("flow.0.slow_start={version}");
            let exit = flow(text, &[&slow_start, acknowledgements]).slow_start_exit;
            let exit = exit.expect("slow start ends");
            assert_eq!(exit.reason, reason, "{version}");
            let error = f64::from(exit.cwnd_segments) / published - 1.0;
            assert!(error.abs() < 0.03, "{version}: {}", exit.cwnd_segments);
        }
    }
}

/// A saturated link carries its rate times payload over packet size.
#[test]
fn a_saturated_link_carries_its_rate() {
    let text = "
path.down = [
  { stage = \"link\", rate_mbps = 50, queue_packets = 200 },
  { stage = \"delay\", delay_ms = 10 },
]
path.up = [{ stage = \"delay\", delay_ms = 10 }]
[run]
duration_s = 20
[[flow]]
kind = \"bulk\"
";
    let summary = run(text, &[]);
    let steady = summary.flows[0].steady_mbps.expect("20 s are long enough");
    assert!((steady - 50.0 * 1448.0 / 1500.0).abs() < 0.05, "{steady}");
}

/// Window / RTT, where the RTT is propagation plus the serialisation of one segment.
#[test]
fn a_small_window_carries_one_window_per_round_trip() {
    let sets = ["flow.0.window_bytes=65160", "run.duration_s=60"];
    let text = LONG_WIRE.replace("window_bytes = 1000000000\n", "");
    let flow = flow(&text, &sets);
    // 45 segments each 100 ms except during the handshake and slow start.
    let expected = 45.0 * 1448.0 * 8.0 / 0.1 / 1e6;
    let measured = flow.steady_mbps.expect("60 s are long enough");
    assert!((measured / expected - 1.0).abs() < 0.001, "{measured} for {expected}");
}
