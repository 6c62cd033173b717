//! Section numbers refer to draft-cardwell-iccrg-bbr-congestion-control-00.

use super::super::tests::{Loop, MSS, PATH, Path};
use super::*;
use crate::congestion::cubic::tests::sample;

impl Bbr1 {
    /// Name of the state.
    fn phase(&self) -> &'static str {
        match self.mode {
            Mode::Startup => "Startup",
            Mode::Drain => "Drain",
            Mode::ProbeBw { .. } => "ProbeBW",
            Mode::ProbeRtt(_) => "ProbeRTT",
        }
    }
}

fn start(path: Path) -> Loop<Bbr1> {
    start_with_seed(path, 1)
}

fn start_with_seed(path: Path, seed: u64) -> Loop<Bbr1> {
    let config = EndpointConfig { mss: MSS, ..EndpointConfig::default() };
    Loop::new(Bbr1::new(&config, seed), path)
}

fn phase(bbr: &Bbr1) -> Option<usize> {
    match bbr.mode {
        Mode::ProbeBw { phase, .. } => Some(phase),
        _ => None,
    }
}

#[test]
fn constants() {
    // Linux rounds them to 1/256, the first one up and the second one down.
    assert!((2.885..2.889).contains(&HIGH_GAIN));
    assert_eq!(PACING_GAINS, [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!((CWND_GAIN, MIN_PIPE_CWND), (2.0, 4.0));
    assert_eq!((BW_ROUNDS, MIN_RTT_AGE), (10, Duration::from_secs(10)));
    assert_eq!(super::super::PROBE_RTT_DURATION, Duration::from_millis(200));
    assert_eq!((FULL_PIPE_GROWTH, FULL_PIPE_ROUNDS, PACING_MARGIN), (1.25, 3, 0.01));
    let gains = [Mode::Startup, Mode::Drain].map(|mode| {
        let mut bbr = start(PATH).bbr;
        bbr.mode = mode;
        bbr.pacing_gain()
    });
    assert!((0.992..1.0).contains(&(gains[0] * gains[1])), "{gains:?}");
}

/// 4.2.1: before the first RTT the rate is that of an RTT of 1 ms, then of the measured one.
#[test]
fn initial_pacing_rate() {
    let mut flow = start(PATH);
    let at_1_ms = 10.0 / 0.001 * HIGH_GAIN * 0.99 * f64::from(MSS);
    assert!((flow.bbr.pacing_rate / at_1_ms - 1.0).abs() < 1e-12);
    flow.run(0.0506, |_| {});
    let at_rtt = 10.0 / 0.0505 * HIGH_GAIN * 0.99 * f64::from(MSS);
    assert!((flow.bbr.pacing_rate / at_rtt - 1.0).abs() < 0.01, "{}", flow.bbr.pacing_rate);
}

/// Linux: 1 ms of data, one segment below 1.2 Mb/s, two above, 64 KB at most.
#[test]
fn bursts() {
    let mut bbr = start(PATH).bbr;
    for (rate, burst) in [(149_999.0, 1), (150_000.0, 2), (10_240_000.0, 10), (1e9, 65)] {
        bbr.pacing_rate = rate;
        assert_eq!(bbr.burst(), Some(burst), "{rate}");
    }
}

/// 4.3.2: the rate doubles each round; three rounds without growth end Startup.
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
        let error = flow.bbr.bandwidth() / rate - 1.0;
        assert!(error.abs() < 0.02, "{rate}: {error}");
        // 4.3.2.1: the queue is at most (gain - 1) BDP.
        assert_eq!(flow.lost, 0);
        assert!(flow.queue() < (HIGH_GAIN - 1.0) * path.bdp() + 3.0 * 65.0);
    }
}

/// 4.3.3
#[test]
fn drain_empties_the_queue() {
    let mut flow = start(PATH);
    let (mut entered, mut left) = (None, None);
    flow.run(2.0, |flow| match flow.bbr.phase() {
        "Drain" => _ = entered.get_or_insert((flow.now, flow.queue())),
        "ProbeBW" => _ = left.get_or_insert((flow.now, flow.queue(), flow.in_flight)),
        _ => {}
    });
    let (from, queue) = entered.expect("Drain");
    let (to, rest, in_flight) = left.expect("ProbeBW");
    assert!(queue > 0.5 * PATH.bdp(), "{queue}");
    // What the link delivers until the pacer sends the next two segments counts as gone.
    let pause = 2.0 / DRAIN_GAIN;
    assert!(rest < 10.0 + pause, "{rest}");
    assert!(f64::from(in_flight) <= PATH.bdp() + 8.0 + pause, "{in_flight}");
    // The queue of (2.885 - 1) BDP drains at a rate of 1 - 1/2.885.
    assert!((to - from).as_secs_f64() < 3.5 * 0.05, "{:?}", to - from);
}

/// 4.3.4.2, 4.3.4.3: the gains follow in order, each for about one RTT, beginning with any but 3/4.
#[test]
fn probe_bw_cycles() {
    let mut first = [0; 8];
    for seed in 0..100 {
        let mut flow = start_with_seed(PATH, seed);
        let mut phases: Vec<(usize, Instant)> = Vec::new();
        flow.run(4.0, |flow| {
            let Some(phase) = phase(&flow.bbr) else { return };
            if phases.last().is_none_or(|&(last, _)| last != phase) {
                phases.push((phase, flow.now));
            }
        });
        first[phases[0].0] += 1;
        assert!(phases.len() > 40);
        for pair in phases.windows(2) {
            let [(phase, from), (next, to)] = [pair[0], pair[1]];
            assert_eq!(next, (phase + 1) % 8);
            let rtts = (to - from).as_secs_f64() / 0.0505;
            let longest = if phase == 0 { 2.2 } else { 1.1 };
            assert!((phase == 1 || rtts > 1.0) && rtts < longest, "phase {phase}: {rtts}");
        }
    }
    // Seven phases occur in a hundred draws.
    assert_eq!(first[1], 0);
    let draws: Vec<i32> = first.into_iter().filter(|&count| count > 0).collect();
    assert!(draws.len() == 7 && draws.iter().all(|&count| count > 4), "{first:?}");
}

/// 4.1.1, 4.1.2, 2.2: both parameters are right, the link is full and the queue is short.
#[test]
fn the_model_is_the_path() {
    for rate in [200.0, 2_000.0, 20_000.0] {
        let path = Path { rate, buffer: 5.0 * rate * 0.05, ..PATH };
        let mut flow = start(path);
        flow.run(2.0, |_| {});
        let (mut queues, mut count) = (0.0, 0.0);
        let used = flow.run(7.0, |flow| {
            let error = flow.bbr.bandwidth() / rate - 1.0;
            assert!(error.abs() < 0.02, "{rate}: {error} at {:?}", flow.now);
            queues += flow.queue();
            count += 1.0;
        });
        let min_rtt = flow.bbr.min_rtt.expect("measured").rtt;
        let expected = path.rtt + Duration::from_secs_f64(1.0 / rate);
        assert!(min_rtt >= expected && min_rtt < expected + Duration::from_micros(1));
        assert!(used > 0.98, "{rate}: {used}");
        assert!(queues / count < 0.3 * path.bdp() + 8.0, "{rate}: {}", queues / count);
        assert_eq!(flow.lost, 0);
    }
}

/// 4.3.5: after 10 s, four segments for 200 ms, then the previous window.
#[test]
fn probe_rtt_every_ten_seconds() {
    let mut flow = start(PATH);
    let mut visits: Vec<(Instant, Instant, u32)> = Vec::new();
    let used = flow.run(40.0, |flow| {
        if flow.bbr.phase() != "ProbeRTT" {
            return;
        }
        assert!(flow.window.cwnd <= 4.0);
        match visits.last_mut() {
            Some((_, last, least)) if flow.now - *last < Duration::from_millis(100) => {
                (*last, *least) = (flow.now, flow.in_flight.min(*least));
            }
            _ => visits.push((flow.now, flow.now, flow.in_flight)),
        }
    });
    assert_eq!(visits.len(), 3, "{visits:?}");
    for pair in visits.windows(2) {
        let between = (pair[1].0 - pair[0].1).as_secs_f64();
        assert!((9.9..10.3).contains(&between), "{between}");
    }
    for (from, to, least) in visits {
        // One RTT until little is in flight, 200 ms, and the rest of a round.
        let time = (to - from).as_secs_f64();
        assert!((0.2..0.36).contains(&time), "{time}");
        assert!(least <= 4);
    }
    assert!(flow.bbr.min_rtt.expect("measured").rtt < Duration::from_micros(50_501));
    assert!(used > 0.96, "{used}");
    // 4.3.5: deliberately slow sending says nothing about the bandwidth.
    assert!((flow.bbr.bandwidth() / PATH.rate - 1.0).abs() < 0.02);
}

/// The path becomes longer: the model follows after 10 s.
#[test]
fn a_longer_path_is_noticed() {
    let mut flow = start(PATH);
    flow.run(3.0, |_| {});
    flow.path.rtt = Duration::from_millis(80);
    flow.run(12.0, |_| {});
    let min_rtt = flow.bbr.min_rtt.expect("measured").rtt;
    assert!(min_rtt >= Duration::from_millis(80) && min_rtt < Duration::from_millis(82));
    assert!(flow.run(5.0, |_| {}) > 0.95);
}

/// 4.1.1: a new rate is found: a higher one at once, a lower one when the old samples are ten
/// rounds old.
#[test]
fn a_new_rate_is_followed() {
    let mut flow = start(PATH);
    flow.run(3.0, |_| {});
    for rate in [8_000.0, 1_000.0, 3_000.0] {
        flow.path.rate = rate;
        flow.run(8.0, |_| {});
        let error = flow.bbr.bandwidth() / rate - 1.0;
        assert!(error.abs() < 0.03, "{rate}: {error}");
    }
}

/// Acknowledgements arrive in batches every 20 ms, on paths shorter and longer than that.
#[test]
fn aggregated_acknowledgements_leave_the_link_full() {
    for (rtt, rate) in [(10, 2_000.0), (20, 10_000.0), (50, 2_000.0)] {
        let grid = Some(Duration::from_millis(20));
        let rtt = Duration::from_millis(rtt);
        let mut flow = start(Path { rate, rtt, buffer: 0.2 * rate, ack_grid: grid, ..PATH });
        flow.run(2.0, |_| {});
        let used = flow.run(7.0, |_| {});
        assert!(used >= 0.95, "{rtt:?}, {rate}: {used}");
        assert!(flow.bbr.extra_acked.max() > 0.01 * rate, "{}", flow.bbr.extra_acked.max());
    }
}

/// Random loss is not a signal. The result is the mean of several runs: where every tenth segment
/// is lost, one run in ten takes it for a policer for some seconds.
#[test]
fn random_loss_is_endured() {
    const SEEDS: u64 = 6;
    for (loss, least) in [(0.01, 0.95), (0.05, 0.85), (0.1, 0.75)] {
        let used = (0..SEEDS).map(|seed| {
            let mut flow = start_with_seed(Path { loss, ..PATH }, seed);
            flow.run(3.0, |_| {});
            let used = flow.run(30.0, |_| {});
            assert_eq!(flow.timeouts, 0);
            used
        });
        let used = used.sum::<f64>() / SEEDS as f64;
        assert!(used >= least, "{loss}: {used}");
    }
}

/// A buffer of a quarter of the BDP: the model stays right although each probe overflows it.
#[test]
fn shallow_buffer() {
    let mut flow = start(Path { buffer: 25.0, ..PATH });
    flow.run(3.0, |_| {});
    let lost = flow.lost;
    let used = flow.run(6.0, |_| {});
    assert!(used > 0.9, "{used}");
    let share = (flow.lost - lost) as f64 / (6.0 * PATH.rate);
    assert!(share < 0.06, "{share}");
}

/// 4.2.3.4: on entering recovery, for one round no more is sent than is delivered; then cwnd is
/// restored.
#[test]
fn recovery_conserves_packets_then_restores_the_window() {
    let mut flow = start(PATH);
    flow.run(3.0, |_| {});
    let before = flow.window.cwnd;
    flow.path.loss = 0.3;
    let mut entered = None;
    flow.run(0.12, |flow| {
        if flow.bbr.state == State::Recovery && entered.is_none() {
            entered = Some((flow.window.cwnd, flow.in_flight, flow.bbr.conserves));
        }
    });
    let (cwnd, in_flight, conserves) = entered.expect("losses");
    assert!(conserves && cwnd - f64::from(in_flight) <= 4.0, "{cwnd} over {in_flight}");
    flow.path.loss = 0.0;
    flow.run(0.2, |_| {});
    assert_eq!((flow.bbr.state, flow.bbr.conserves), (State::Open, false));
    assert!(flow.window.cwnd >= before - 4.0, "{} after {before}", flow.window.cwnd);
}

/// 4.2.3.4: after a time-out cwnd is one segment, then grows by what is delivered; the model stays.
#[test]
fn a_time_out_keeps_the_model() {
    let mut flow = start(PATH);
    flow.run(3.0, |_| {});
    let bandwidth = flow.bbr.bandwidth();
    flow.path.loss = 1.0;
    while flow.timeouts == 0 {
        flow.run(0.01, |_| {});
    }
    assert_eq!(flow.window.cwnd, 1.0);
    assert_eq!(flow.bbr.bandwidth(), bandwidth);
    flow.path.loss = 0.0;
    flow.run(1.5, |_| {});
    let used = flow.run(2.0, |_| {});
    assert!(used > 0.95, "{used}");
}

/// 4.3.4.4: after idling, sending resumes at the estimated rate, without a burst or ProbeRTT.
#[test]
fn restarts_from_idle_at_the_estimated_rate() {
    let mut flow = start(PATH);
    flow.run(3.0, |_| {});
    flow.idle(20.0);
    let mut queue = 0.0f64;
    let used = flow.run(0.5, |flow| {
        assert_eq!(flow.bbr.phase(), "ProbeBW");
        queue = queue.max(flow.queue());
    });
    assert!(used > 0.85, "{used}");
    assert!(queue < 0.4 * PATH.bdp(), "{queue}");
    assert!((flow.bbr.bandwidth() / PATH.rate - 1.0).abs() < 0.02);
}

/// A limit by the application is not a lack of bandwidth (4.1.1.1).
#[test]
fn app_limited_samples_do_not_lower_the_estimate() {
    let mut flow = start(PATH);
    flow.run(3.0, |_| {});
    for _ in 0..100 {
        flow.run(0.005, |_| {});
        flow.idle(0.08);
    }
    assert!((flow.bbr.bandwidth() / PATH.rate - 1.0).abs() < 0.02, "{}", flow.bbr.bandwidth());
}

/// A bucket of 300 segments that fills at 500 per second: half of what is sent would be lost.
#[test]
fn a_policer_is_found() {
    let mut policer = Policer::default();
    let mut rate = RateSample {
        total_delivered: 0,
        prior_delivered: 0,
        interval: Some(Duration::from_millis(50)),
        app_limited: false,
        prior_in_flight: 100,
        tx_in_flight: 100,
        total_lost: 0,
        prior_lost: 0,
    };
    let mut found = None;
    for round in 0..100u64 {
        rate.total_delivered += 25;
        rate.total_lost += 10;
        let again = policer.update(&Sample {
            now: Instant::ZERO + Duration::from_millis(50) * round,
            rate: &rate,
            app_limited: false,
            mss: MSS,
            loss: true,
            round_start: true,
            in_probe_bw: true,
        });
        if let Some(rate) = policer.rate() {
            assert!((rate - 500.0).abs() < 1.0, "{rate}");
            found.get_or_insert(round);
        }
        if again {
            // Two intervals of four rounds, the first beginning with a round, then 48 rounds at
            // that rate.
            assert_eq!((found, round), (Some(7), 7 + 48));
            assert_eq!(policer.rate(), None);
            return;
        }
    }
    panic!("kept for ever");
}

/// Too little loss to indicate a policer.
#[test]
fn random_loss_is_no_policer() {
    let mut flow = start(Path { loss: 0.1, ..PATH });
    flow.run(20.0, |flow| assert!(flow.bbr.policer.rate().is_none()));
}

/// An acknowledgement of one segment 100 ms after the handshake, with this many delivered since then.
fn early(total_delivered: u64) -> AckSample {
    let now = Instant::ZERO + Duration::from_millis(100);
    let rate = RateSample {
        total_delivered,
        prior_delivered: 0,
        interval: Some(Duration::from_millis(90)),
        app_limited: false,
        prior_in_flight: 10,
        tx_in_flight: 10,
        total_lost: 0,
        prior_lost: 0,
    };
    let (rtt, min_rtt) = (Duration::from_millis(28), Duration::from_millis(22));
    AckSample { min_rtt, rate: Some(rate), ..sample(now, 1, rtt) }
}

/// Linux 6.18 at 1.91 Mb/s and 21.7 ms: target cwnds of 10 and 18, which follow from the
/// handshake's 22 ms and not from the data's 28 ms.
#[test]
fn the_handshake_is_the_first_min_rtt() {
    let mut bbr = start(PATH).bbr;
    bbr.on_ack(&early(1), &mut Window { cwnd: 10.0, ssthresh: f64::INFINITY });
    let min = bbr.min_rtt.unwrap();
    assert_eq!(min.rtt, Duration::from_millis(22));
    assert_eq!(min.at, Instant::ZERO + Duration::from_millis(72));
}

/// Seen with Linux 6.18: cwnd grows with the first eight segments, whatever the target is.
#[test]
fn the_syn_counts_as_delivered() {
    let grows = |total_delivered| {
        let mut window = Window { cwnd: 18.0, ssthresh: f64::INFINITY };
        start(PATH).bbr.on_ack(&early(total_delivered), &mut window);
        window.cwnd
    };
    assert_eq!((grows(8), grows(9)), (19.0, 18.0));
}

/// Linux 6.18 at 2.4 Mb/s and 77 ms: what the bottleneck delivers until the pacer sends next no
/// longer counts as in flight; the burst that is sent then does, while the gain is above 1.
#[test]
fn in_flight_counts_when_the_pacer_sends() {
    let mut bbr = start(PATH).bbr;
    bbr.bandwidth.update(0, 1000.0, BW_ROUNDS);
    bbr.pacing_rate = 10_240_000.0;
    let ack = AckSample { pacing_wait: Duration::from_micros(5_900), ..early(1) };
    let in_flight = |gain| bbr.in_flight_when_sending(&ack, 20, gain);
    assert_eq!((in_flight(HIGH_GAIN), in_flight(1.0), in_flight(DRAIN_GAIN)), (25.0, 15.0, 15.0));
    assert_eq!(bbr.in_flight_when_sending(&ack, 3, 1.0), 0.0);
}

/// A burst more than the target is in flight when STARTUP ends: draining continues.
#[test]
fn draining_begins_with_the_burst_that_startup_sends_next() {
    let ends_in = |in_flight| {
        let mut bbr = start(PATH).bbr;
        bbr.bandwidth.update(0, 1000.0, BW_ROUNDS);
        (bbr.full_pipe.rounds, bbr.pacing_rate) = (2, 10_240_000.0);
        bbr.full_pipe.bandwidth = 1000.0;
        let mut ack = early(100);
        ack.in_flight = in_flight;
        bbr.on_ack(&ack, &mut Window { cwnd: 60.0, ssthresh: f64::INFINITY });
        bbr.phase()
    };
    // Before the first RTT the target is ten segments and three bursts of ten.
    assert_eq!((ends_in(30), ends_in(31)), ("ProbeBW", "Drain"));
}
