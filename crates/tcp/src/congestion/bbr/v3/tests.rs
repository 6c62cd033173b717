//! Section numbers refer to draft-ietf-ccwg-bbr-06.

use super::super::tests::{Loop, MSS, PATH, Path};
use super::super::{MIN_PIPE_CWND, PACING_MARGIN, PROBE_RTT_DURATION};
use super::*;

impl Bbr3 {
    /// Name of the state.
    fn phase(&self) -> &'static str {
        match self.state {
            Phase::Startup => "Startup",
            Phase::Drain { .. } => "Drain",
            Phase::Down => "ProbeBW_DOWN",
            Phase::Cruise => "ProbeBW_CRUISE",
            Phase::Refill => "ProbeBW_REFILL",
            Phase::Up => "ProbeBW_UP",
            Phase::ProbeRtt(_) => "ProbeRTT",
        }
    }
}

const CYCLE: [&str; 4] = ["ProbeBW_DOWN", "ProbeBW_CRUISE", "ProbeBW_REFILL", "ProbeBW_UP"];

fn start(path: Path) -> Loop<Bbr3> {
    let config = EndpointConfig { mss: MSS, ..EndpointConfig::default() };
    Loop::new(Bbr3::new(&config, 1), path)
}

/// The states entered within `seconds`, with their times.
fn states(flow: &mut Loop<Bbr3>, seconds: f64) -> Vec<(&'static str, Instant)> {
    let mut states: Vec<(&str, Instant)> = Vec::new();
    flow.run(seconds, |flow| {
        let state = flow.bbr.phase();
        if states.last().is_none_or(|&(last, _)| last != state) {
            states.push((state, flow.now));
        }
    });
    states
}

#[test]
fn constants() {
    use super::{control::*, loss::*, probe_bw::*};
    assert_eq!(STARTUP_PACING_GAIN, 2.77);
    assert_eq!([DRAIN_PACING_GAIN, DOWN_PACING_GAIN, UP_PACING_GAIN], [0.5, 0.9, 1.25]);
    assert_eq!([CWND_GAIN, UP_CWND_GAIN, PROBE_RTT_CWND_GAIN], [2.0, 2.25, 0.5]);
    assert_eq!([LOSS_THRESHOLD, BETA, HEADROOM], [0.02, 0.7, 0.15]);
    assert_eq!((STARTUP_FULL_LOSSES, MIN_PIPE_CWND, PACING_MARGIN), (6, 4.0, 0.01));
    assert_eq!(
        (MIN_RTT_AGE, PROBE_RTT_INTERVAL),
        (Duration::from_secs(10), Duration::from_secs(5))
    );
    assert_eq!(PROBE_RTT_DURATION, Duration::from_millis(200));
    assert_eq!((PROBE_WAIT_SECONDS, RENO_ROUNDS), (2.0, 63.0));
    assert_eq!((EXTRA_ACKED_ROUNDS, EXTRA_ACKED_ROUNDS_STARTUP, DRAIN_ROUNDS), (10, 1, 3));
    assert_eq!((FULL_PIPE_GROWTH, FULL_PIPE_ROUNDS), (1.25, 3));
}

/// 5.6.2, 5.6.3
#[test]
fn pacing_rate_and_quantum() {
    let mut flow = start(PATH);
    let at_1_ms = 10.0 / 0.001 * 2.77 * 0.99 * f64::from(MSS);
    assert!((flow.bbr.pacing_rate / at_1_ms - 1.0).abs() < 1e-12);
    flow.run(0.0506, |_| {});
    let at_rtt = 10.0 / 0.0505 * 2.77 * f64::from(MSS);
    assert!((flow.bbr.pacing_rate / at_rtt - 1.0).abs() < 0.01, "{}", flow.bbr.pacing_rate);
    for (rate, burst) in [(1.0, 2), (2.9e6, 2), (1e7, 10), (1e9, 65)] {
        flow.bbr.pacing_rate = rate;
        assert_eq!(flow.bbr.burst(), Some(burst), "{rate}");
    }
}

/// A.1, 5.3.1: the rate doubles each round; three rounds without growth end Startup.
#[test]
fn startup_fills_the_pipe_in_logarithmic_time() {
    for rate in [200.0, 2_000.0, 20_000.0] {
        let path = Path { rate, buffer: 4.0 * rate * 0.05, ..PATH };
        let mut flow = start(path);
        while flow.exit.is_none() {
            assert_eq!(flow.bbr.phase(), "Startup");
            flow.run(0.01, |_| {});
        }
        let doublings = (path.bdp() / 10.0).log2().ceil().max(0.0) as u64;
        let rounds = flow.bbr.round.count;
        assert!((3..=doublings + 6).contains(&rounds), "{rate}: {rounds}, {doublings} doublings");
        let exit = flow.exit.expect("it has ended").1;
        assert_eq!(exit.reason, SlowStartExitReason::FullPipe);
        assert!((flow.bbr.bw / rate - 1.0).abs() < 0.02, "{rate}: {}", flow.bbr.bw);
        assert_eq!((flow.lost, flow.bbr.inflight_longterm), (0, f64::INFINITY));
        // The queue is at most (gain - 1) BDP, plus quanta.
        assert!(flow.queue() < 1.1 * path.bdp() + 3.0 * 65.0, "{rate}: {}", flow.queue());
    }
}

/// 5.3.1.3: six ranges and more than 2 % lost in a round of recovery end Startup; the bound is what
/// arrived.
#[test]
fn startup_ends_by_loss() {
    let mut flow = start(Path { rate: 20_000.0, buffer: 100.0, ..PATH });
    while flow.exit.is_none() {
        flow.run(0.01, |_| {});
    }
    let exit = flow.exit.expect("it has ended").1;
    assert_eq!(exit.reason, SlowStartExitReason::Loss);
    let bound = flow.bbr.inflight_longterm;
    assert!((900.0..1400.0).contains(&bound), "{bound}");
    // The full rate would have been reached in any case.
    assert!(flow.run(3.0, |_| {}) > 0.85);
}

/// 5.3.1.3: 1 % is below the threshold.
#[test]
fn startup_does_not_end_by_little_loss() {
    let mut flow = start(Path { rate: 20_000.0, buffer: 4_000.0, loss: 0.01, ..PATH });
    while flow.exit.is_none() {
        flow.run(0.01, |_| {});
    }
    assert_eq!(flow.exit.expect("it has ended").1.reason, SlowStartExitReason::FullPipe);
    assert!((flow.bbr.max_bw.max() / 20_000.0 - 1.0).abs() < 0.03);
}

/// A.3, 5.3.2
#[test]
fn drain_empties_the_queue() {
    let mut flow = start(PATH);
    let (mut entered, mut left) = (None, None);
    flow.run(2.0, |flow| match flow.bbr.phase() {
        "Drain" => _ = entered.get_or_insert((flow.now, flow.queue())),
        // Nothing is left to do in DOWN.
        "ProbeBW_CRUISE" => _ = left.get_or_insert((flow.now, flow.queue())),
        _ => {}
    });
    let (from, queue) = entered.expect("Drain");
    let (to, rest) = left.expect("ProbeBW");
    assert!(queue > 0.5 * PATH.bdp() && rest < 10.0, "{queue}, {rest}");
    // 2.5: at most one round trip, that of the queue included.
    assert!((to - from).as_secs_f64() < 2.1 * 0.0505, "{:?}", to - from);
}

/// 5.3.3: DOWN, CRUISE, REFILL, UP; from one DOWN to the next REFILL it is 2 to 3 s, or as many
/// rounds as the BDP has segments, at most 62 to 63.
#[test]
fn probe_bw_cycles() {
    for rtt in [20, 50, 200] {
        let path = Path { rtt: Duration::from_millis(rtt), ..PATH };
        let mut flow = start(path);
        let states = states(&mut flow, 60.0);
        let mut cycles = 0;
        let mut down_at = None;
        for pair in states.windows(2) {
            let [(state, from), (next, to)] = [pair[0], pair[1]];
            let rounds = (to - from).as_secs_f64() / (rtt as f64 / 1000.0);
            match (state, next) {
                ("Startup", "Drain") | ("Drain", "ProbeBW_CRUISE") => {}
                (_, "ProbeRTT") | ("ProbeRTT", "ProbeBW_CRUISE") => {}
                ("ProbeBW_REFILL", "ProbeBW_UP") => assert!((0.9..2.1).contains(&rounds)),
                ("ProbeBW_UP", "ProbeBW_DOWN") => assert!((1.0..6.0).contains(&rounds), "{rounds}"),
                _ => {
                    let at = CYCLE.iter().position(|&name| name == state);
                    assert_eq!(Some(CYCLE[(at.expect("ProbeBW") + 1) % 4]), Some(next));
                }
            }
            match next {
                "ProbeBW_DOWN" => down_at = Some(to),
                "ProbeRTT" => down_at = None,
                "ProbeBW_REFILL" => {
                    cycles += 1;
                    let Some(since) = down_at.take() else { continue };
                    let wait = (to - since).as_secs_f64();
                    let reno = (0.97 * path.bdp()).min(62.0) * rtt as f64 / 1000.0;
                    let shortest = reno.min(2.0);
                    assert!((0.95 * shortest..3.2).contains(&wait), "{rtt}: {wait}");
                }
                _ => {}
            }
        }
        assert!(cycles >= 10, "{rtt}: {cycles}");
    }
}

/// 5.5.2, 5.5.7: both parameters are right, the link is full and the queue is short.
#[test]
fn the_model_is_the_path() {
    for rate in [200.0, 2_000.0, 20_000.0] {
        let path = Path { rate, buffer: 5.0 * rate * 0.05, ..PATH };
        let mut flow = start(path);
        flow.run(2.0, |_| {});
        let (mut queues, mut count) = (0.0, 0.0);
        let used = flow.run(20.0, |flow| {
            let error = flow.bbr.max_bw.max() / rate - 1.0;
            assert!(error.abs() < 0.02, "{rate}: {error} at {:?}", flow.now);
            queues += flow.queue();
            count += 1.0;
        });
        let min_rtt = flow.bbr.rtts.min.expect("measured").rtt;
        let expected = path.rtt + Duration::from_secs_f64(1.0 / rate);
        assert!(min_rtt >= expected && min_rtt < expected + Duration::from_micros(1));
        assert!(used > 0.95, "{rate}: {used}");
        assert!(queues / count < 0.3 * path.bdp() + 8.0, "{rate}: {}", queues / count);
        assert_eq!(flow.lost, 0);
    }
}

/// A.10, 5.3.4: every 5 s, half of the BDP for 200 ms; then CRUISE.
#[test]
fn probe_rtt_every_five_seconds() {
    let mut flow = start(PATH);
    let mut visits: Vec<(Instant, Instant, u32)> = Vec::new();
    let mut previous = "";
    flow.run(32.0, |flow| {
        let state = flow.bbr.phase();
        let before = std::mem::replace(&mut previous, state);
        if state == "ProbeRTT" {
            let half = 0.5 * PATH.bdp();
            assert!(flow.window.cwnd <= half + 1.0, "{}", flow.window.cwnd);
            if before != state {
                visits.push((flow.now, flow.now, flow.in_flight));
            }
            let visit = visits.last_mut().expect("entered");
            (visit.1, visit.2) = (flow.now, visit.2.min(flow.in_flight));
        } else if before == "ProbeRTT" {
            assert_eq!(state, "ProbeBW_CRUISE");
        }
    });
    assert_eq!(visits.len(), 6, "{visits:?}");
    for pair in visits.windows(2) {
        let between = (pair[1].0 - pair[0].1).as_secs_f64();
        assert!((4.9..5.3).contains(&between), "{between}");
    }
    for (from, to, least) in visits {
        let time = (to - from).as_secs_f64();
        assert!((0.2..0.36).contains(&time), "{time}");
        assert!((f64::from(least) / PATH.bdp() - 0.5).abs() < 0.03, "{least}");
    }
}

/// A.15, A.16: a new rate is found within a few cycles.
#[test]
fn a_new_rate_is_followed() {
    let mut flow = start(PATH);
    flow.run(3.0, |_| {});
    for rate in [20_000.0, 2_000.0, 1_000.0] {
        flow.path.rate = rate;
        flow.run(12.0, |_| {});
        let error = flow.bbr.max_bw.max() / rate - 1.0;
        assert!(error.abs() < 0.05, "{rate}: {error}");
        let used = flow.run(5.0, |_| {});
        assert!(used > 0.85, "{rate}: {used}");
    }
}

/// A.13
#[test]
fn aggregated_acknowledgements_leave_the_link_full() {
    for (rtt, rate) in [(10, 2_000.0), (20, 10_000.0), (50, 2_000.0)] {
        let grid = Some(Duration::from_millis(20));
        let rtt = Duration::from_millis(rtt);
        let mut flow = start(Path { rate, rtt, buffer: 0.2 * rate, ack_grid: grid, ..PATH });
        flow.run(2.0, |_| {});
        let used = flow.run(20.0, |_| {});
        assert!(used >= 0.9, "{rtt:?}, {rate}: {used}");
    }
}

/// 3.1: full rate with up to 1 % of random loss.
#[test]
fn random_loss_of_one_percent_is_endured() {
    for rate in [2_000.0, 20_000.0] {
        let mut flow = start(Path { rate, buffer: 0.2 * rate, loss: 0.01, ..PATH });
        flow.run(3.0, |_| {});
        let used = flow.run(60.0, |_| {});
        assert!(used >= 0.80, "{rate}: {used}");
        assert_eq!(flow.timeouts, 0);
    }
}

/// 5.5.10: a buffer of a quarter of the BDP. Probes end when they lose more than 2 %; the bound is
/// what fits; little is lost, whereas v1 loses some segments at each probe.
#[test]
fn shallow_buffer() {
    let path = Path { buffer: 25.0, ..PATH };
    let mut flow = start(path);
    flow.run(3.0, |_| {});
    let lost = flow.lost;
    let used = flow.run(20.0, |_| {});
    let bound = flow.bbr.inflight_longterm;
    let room = path.bdp() + path.buffer;
    assert!(bound > 0.8 * path.bdp() && bound < 1.1 * room, "{bound} of {room}");
    assert!(used > 0.85, "{used}");
    let share = (flow.lost - lost) as f64 / (20.0 * path.rate);
    assert!(share < 0.005, "{share}");
}

/// 5.3.3.3, 5.3.3.7, 5.3.3.9: too much in flight while probing lowers the bound, once per probe,
/// and ends the probe.
#[test]
fn a_probe_that_loses_ends() {
    let mut flow = start(PATH);
    while flow.bbr.state != Phase::Up {
        flow.run(0.001, |_| {});
    }
    let lost = LostSegment {
        now: flow.now,
        seq: 0,
        end: 1,
        tx_in_flight: 120,
        app_limited: false,
        total_delivered: flow.delivered,
        total_lost: 2,
        prior_lost: 0,
    };
    let mut window = flow.window;
    flow.bbr.on_lost(&lost, &mut window);
    assert_eq!((flow.bbr.state, flow.bbr.inflight_longterm), (Phase::Up, f64::INFINITY));
    // 3 of 120 are more than 2 %: 119 + (0.02 × 119 - 2) / 0.98.
    flow.bbr.on_lost(&LostSegment { total_lost: 3, ..lost }, &mut window);
    assert_eq!(flow.bbr.state, Phase::Down);
    let expected = 119.0 + (0.02 * 119.0 - 2.0) / 0.98;
    assert!((flow.bbr.inflight_longterm - expected).abs() < 1e-9);
    flow.bbr.on_lost(&LostSegment { total_lost: 50, ..lost }, &mut window);
    assert!((flow.bbr.inflight_longterm - expected).abs() < 1e-9);
    // 5.5.11.2: the loss was spurious.
    flow.bbr.on_undo(&mut window);
    assert_eq!((flow.bbr.state, flow.bbr.inflight_longterm), (Phase::Refill, f64::INFINITY));
}

/// 5.5.10.3: in CRUISE, loss lowers the short-term bounds to what arrives, by at most 30 %; REFILL
/// resets them.
#[test]
fn cruising_answers_loss_for_the_short_term() {
    let mut flow = start(PATH);
    while flow.bbr.state != Phase::Cruise {
        flow.run(0.001, |_| {});
    }
    flow.path.loss = 0.02;
    let mut last = f64::INFINITY;
    flow.run(0.5, |flow| {
        let bound = flow.bbr.bw_shortterm;
        assert!(bound <= PATH.rate * 1.01 || bound.is_infinite());
        assert!(last.is_infinite() || bound >= 0.699 * last);
        last = bound;
    });
    assert_eq!(flow.bbr.phase(), "ProbeBW_CRUISE");
    assert!(last < PATH.rate && flow.bbr.inflight_shortterm.is_finite());
    assert!(flow.bbr.pacing_rate < PATH.rate * f64::from(MSS));
    flow.path.loss = 0.0;
    while flow.bbr.state != Phase::Refill {
        flow.run(0.001, |_| {});
    }
    assert_eq!(flow.bbr.bw_shortterm, f64::INFINITY);
    assert_eq!(flow.bbr.inflight_shortterm, f64::INFINITY);
}

/// 5.6.4.4: after a time-out cwnd is one segment, then grows by what is delivered; the model stays.
#[test]
fn a_time_out_keeps_the_model() {
    let mut flow = start(PATH);
    flow.run(1.0, |_| {});
    let bandwidth = flow.bbr.max_bw.max();
    flow.path.loss = 1.0;
    while flow.timeouts == 0 {
        flow.run(0.01, |_| {});
    }
    assert_eq!(flow.window.cwnd, 1.0);
    assert_eq!(flow.bbr.max_bw.max(), bandwidth);
    flow.path.loss = 0.0;
    flow.run(4.0, |_| {});
    let used = flow.run(2.0, |_| {});
    assert!(used > 0.85, "{used}");
}

/// 5.4.1
#[test]
fn restarts_from_idle_at_the_estimated_rate() {
    let mut flow = start(PATH);
    flow.run(3.0, |_| {});
    flow.idle(20.0);
    let mut queue = 0.0f64;
    // Bandwidth is probed soon after.
    flow.run(0.1, |flow| queue = queue.max(flow.queue()));
    assert!(queue < 10.0, "{queue}");
    let used = flow.run(0.4, |flow| assert_ne!(flow.bbr.phase(), "ProbeRTT"));
    assert!(used > 0.95, "{used}");
}

/// 5.3.3.6: after a probe that went too high the next one is only a brief test, then a full one
/// follows.
#[test]
fn probes_with_precaution_after_loss() {
    let mut flow = start(Path { buffer: 25.0, ..PATH });
    while !flow.bbr.probe.too_high {
        flow.run(0.001, |_| {});
    }
    flow.path.buffer = 400.0;
    let names: Vec<&str> = states(&mut flow, 9.0).iter().map(|&(name, _)| name).collect();
    let up = names.iter().position(|&name| name == "ProbeBW_UP").expect("probes");
    let expected = ["ProbeBW_UP", "ProbeBW_DOWN", "ProbeBW_REFILL", "ProbeBW_UP", "ProbeBW_DOWN"];
    assert_eq!(names[up..up + 5], expected, "{names:?}");
    assert!(!flow.bbr.probe.too_high);
}
