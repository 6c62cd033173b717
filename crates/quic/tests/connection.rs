//! Connections of two ends over a path of the test's own, in virtual time.
#![cfg(feature = "quinn")]

use std::collections::BTreeMap;

use airpath_base::{Duration, Ecn, Instant, Stream};
use airpath_quic::{AckFrequency, Config, Congestion, Endpoint, Limited, connect, listen};

const CLIENT: usize = 0;
const SERVER: usize = 1;

fn config() -> Config {
    Config {
        congestion: Congestion::Cubic,
        initial_window: 12_000,
        initial_rtt: Duration::from_millis(333),
        initial_mtu: 1200,
        max_mtu: 1452,
        receive_window: 1_250_000,
        send_window: 10_000_000,
        ack_frequency: None,
        idle_timeout: Duration::from_secs(30),
        certificate_bytes: None,
    }
}

/// What one connection did.
#[derive(Clone, PartialEq, Debug, Default)]
struct Outcome {
    /// FNV-1a over the time, the direction and the bytes of every datagram.
    hash: u64,
    /// Sizes of the datagrams, by the end that sent them.
    sizes: [Vec<usize>; 2],
    established_at: Option<Instant>,
    complete_at: Option<Instant>,
    ended_at: Instant,
    written: u64,
    delivered: u64,
    rtt: Vec<Duration>,
    lost: u64,
    failures: [Option<String>; 2],
    limited: Limited,
}

/// Whether the path drops a datagram: when it was sent, by which end, and its number.
type Drops<'a> = &'a dyn Fn(Instant, usize, u64) -> bool;

/// A path of 20 ms each way that takes 1 ms for each datagram, and drops what `drops` says.
struct Test<'a> {
    config: Config,
    seed: u64,
    sender: usize,
    size: Option<u64>,
    until: Duration,
    drops: Drops<'a>,
}

impl Test<'_> {
    fn new(size: u64) -> Self {
        let until = Duration::from_secs(100);
        let (config, sender, size) = (config(), SERVER, Some(size));
        Self { config, seed: 1, sender, size, until, drops: &|_, _, _| false }
    }

    fn run(&self) -> Outcome {
        let stream = |end: &str| Stream::new(self.seed, &format!("flow.test.quic.{end}"));
        let sends = |end| self.sender == end;
        let server = stream("server");
        let (start, config) = (Instant::ZERO, &self.config);
        let mut ends = [
            connect(start, config, sends(CLIENT), stream("ue"), server.clone()),
            listen(config, sends(SERVER), server),
        ];
        ends[self.sender].offer(self.size.unwrap_or(u64::MAX));
        if self.size.is_some() {
            ends[self.sender].close_when_written();
        }
        let mut wire = Wire { events: BTreeMap::new(), free: [start; 2], sent: [0; 2] };
        let mut outcome = Outcome { hash: 0xcbf2_9ce4_8422_2325, ..Outcome::default() };
        let mut now = start;
        while now <= start + self.until {
            for (index, end) in ends.iter_mut().enumerate() {
                wire.transmit(index, end.as_mut(), now, &mut outcome, self.drops);
            }
            let arrival = wire.events.keys().next().map(|&(at, ..)| at);
            let timers = ends.iter_mut().filter_map(|end| end.next_timer());
            let Some(next) = timers.chain(arrival).min() else { break };
            assert!(next > now || arrival == Some(now), "time stands still");
            now = next;
            while let Some(entry) = wire.events.first_entry().filter(|entry| entry.key().0 <= now) {
                let ((_, from, _), (ecn, datagram)) = entry.remove_entry();
                ends[1 - from].on_datagram(now, ecn, &datagram);
            }
            ends.iter_mut().for_each(|end| end.on_timer(now));
            outcome.note(now, &mut ends, self);
        }
        outcome.failures = [CLIENT, SERVER].map(|end| ends[end].failure().map(str::to_owned));
        outcome
    }
}

struct Wire {
    events: BTreeMap<(Instant, usize, u64), (Ecn, Vec<u8>)>,
    free: [Instant; 2],
    sent: [u64; 2],
}

impl Wire {
    fn transmit(
        &mut self,
        from: usize,
        end: &mut dyn Endpoint,
        now: Instant,
        outcome: &mut Outcome,
        drops: Drops<'_>,
    ) {
        end.transmit(now, &mut |ecn, datagram| {
            outcome.sizes[from].push(datagram.len());
            outcome.hash(&now.as_nanos().to_le_bytes());
            outcome.hash(&[from as u8]);
            outcome.hash(datagram);
            let number = self.sent[from];
            self.sent[from] += 1;
            if !drops(now, from, number) {
                self.free[from] = self.free[from].max(now) + Duration::from_millis(1);
                let at = self.free[from] + Duration::from_millis(20);
                self.events.insert((at, from, number), (ecn, datagram.to_vec()));
            }
        });
    }
}

impl Outcome {
    fn hash(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn note(&mut self, now: Instant, ends: &mut [Box<dyn Endpoint>; 2], test: &Test<'_>) {
        let receiver = 1 - test.sender;
        self.written = ends[test.sender].written();
        self.delivered = ends[receiver].delivered();
        assert!(self.delivered <= self.written, "bytes out of nothing");
        // A server without a connection has no window.
        assert!(self.written == 0 || ends[test.sender].window().bytes >= 2400);
        self.rtt.extend(std::iter::from_fn(|| ends[test.sender].take_rtt_sample()));
        self.lost = ends[test.sender].packets_lost();
        self.limited = ends[test.sender].limited(now);
        if ends.iter().all(|end| end.is_established()) {
            self.established_at.get_or_insert(now);
        }
        if Some(self.delivered) == test.size {
            self.complete_at.get_or_insert(now);
        }
        self.ended_at = now;
    }
}

fn ms(at: Option<Instant>) -> f64 {
    at.map_or(f64::NAN, |at| at.as_secs_f64() * 1e3)
}

#[test]
fn a_file_arrives_whole_in_both_directions_and_with_each_control() {
    for sender in [CLIENT, SERVER] {
        for congestion in [Congestion::Cubic, Congestion::NewReno] {
            let config = Config { congestion, ..config() };
            let outcome = Test { config, sender, ..Test::new(500_000) }.run();
            assert_eq!((outcome.written, outcome.delivered), (500_000, 500_000));
            assert_eq!(outcome.failures, [None, None]);
            // A datagram of the discovered size each millisecond.
            let least = 500_000.0 / 1452.0;
            let complete = ms(outcome.complete_at);
            assert!((least..3.0 * least).contains(&complete), "{congestion:?}: {complete} ms");
            let least = Duration::from_millis(42);
            assert!(outcome.rtt.iter().all(|&rtt| rtt >= least), "{:?}", outcome.rtt.iter().min());
        }
    }
}

#[test]
fn the_handshake_takes_one_round_trip_and_the_first_flights_are_full_datagrams() {
    let outcome = Test::new(1000).run();
    // The client is done after one round trip, the server after one and a half.
    let established = ms(outcome.established_at);
    assert!((63.0..75.0).contains(&established), "{established} ms");
    // RFC 9000 14.1: what carries an Initial is padded.
    assert_eq!((outcome.sizes[CLIENT][0], outcome.sizes[SERVER][0]), (1200, 1200));
}

#[test]
fn a_long_certificate_waits_until_the_address_is_validated() {
    let with = |certificate_bytes| {
        let config = Config { certificate_bytes, ..config() };
        ms(Test { config, ..Test::new(1000) }.run().established_at)
    };
    let (short, long) = (with(None), with(Some(6000)));
    // Three times 1200 bytes do not hold it (RFC 9000 8.1): another round trip.
    assert!((40.0..60.0).contains(&(long - short)), "{short} ms and {long} ms");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let drops = |_: Instant, _: usize, number: u64| number % 50 == 7;
    let run = |seed| Test { seed, drops: &drops, ..Test::new(200_000) }.run();
    let first = run(1);
    assert_eq!(first.delivered, 200_000);
    for _ in 0..20 {
        let again = run(1);
        assert_eq!(first.hash, again.hash);
        assert_eq!(first, again);
    }
    assert_ne!(first.hash, run(2).hash);
}

#[test]
#[ignore = "a hundred runs"]
fn a_hundred_runs_have_one_hash() {
    let drops = |_: Instant, _: usize, number: u64| number % 50 == 7;
    let run = || Test { drops: &drops, ..Test::new(2_000_000) }.run().hash;
    let first = run();
    assert!((1..100).all(|_| run() == first));
}

#[test]
fn whatever_datagram_of_the_handshake_is_lost_the_file_arrives() {
    for from in [CLIENT, SERVER] {
        for lost in 0..6 {
            let drops = move |_: Instant, end: usize, number: u64| end == from && number == lost;
            let outcome = Test { drops: &drops, ..Test::new(100_000) }.run();
            assert_eq!(outcome.delivered, 100_000, "datagram {lost} of {from}");
            assert_eq!(outcome.failures, [None, None]);
        }
    }
}

#[test]
fn losses_are_made_good_and_counted() {
    for sender in [CLIENT, SERVER] {
        let drops = move |_: Instant, end: usize, number: u64| {
            end == sender && number > 20 && number.is_multiple_of(40)
        };
        let outcome = Test { sender, drops: &drops, ..Test::new(400_000) }.run();
        let dropped =
            (0..outcome.sizes[sender].len() as u64).filter(|&at| drops(Instant::ZERO, sender, at));
        assert_eq!((outcome.delivered, outcome.written), (400_000, 400_000));
        assert_eq!(outcome.lost, dropped.count() as u64);
    }
}

/// Fractions of the time from the first datagram with data to the last: congestion control, the
/// receiver's window, and the sender's own.
fn limited(config: Config, sender: usize, drops: Drops<'_>) -> [f64; 3] {
    let outcome = Test { config, sender, drops, ..Test::new(500_000) }.run();
    assert_eq!(outcome.delivered, 500_000);
    let lasted = ms(outcome.complete_at) - ms(outcome.established_at);
    let Limited { congestion, receive_window, send_window } = outcome.limited;
    [congestion, receive_window, send_window].map(|time| time.as_millis_f64() / lasted)
}

#[test]
fn the_limit_of_a_sender_is_the_one_that_was_set() {
    let lossy = |_: Instant, _: usize, number: u64| number > 50 && number.is_multiple_of(60);
    let lossless = |_: Instant, _: usize, _: u64| false;
    // A third of what the path holds, so each round trip ends with a wait.
    let small = 20_000;
    let receive = Config { receive_window: small, ..config() };
    let send = Config { send_window: small, ..config() };
    for sender in [CLIENT, SERVER] {
        let [congestion, receiver, own] = limited(receive.clone(), sender, &lossless);
        assert!(receiver > congestion && own == 0.0, "{congestion} {receiver} {own}");
        let [congestion, receiver, own] = limited(send.clone(), sender, &lossless);
        assert!(own > congestion && receiver == 0.0, "{congestion} {receiver} {own}");
        // After losses cwnd is smaller than either window now and then.
        let [congestion, receiver, own] = limited(receive.clone(), sender, &lossy);
        assert!(congestion > 0.0 && receiver > 0.0 && own == 0.0, "{congestion} {receiver} {own}");
        let [congestion, receiver, own] = limited(send.clone(), sender, &lossy);
        assert!(congestion > 0.0 && receiver == 0.0 && own > 0.0, "{congestion} {receiver} {own}");
        for drops in [&lossless as Drops<'_>, &lossy] {
            let [congestion, receiver, own] = limited(config(), sender, drops);
            assert!(congestion > 0.5 && receiver + own == 0.0, "{congestion} {receiver} {own}");
        }
    }
}

#[test]
fn after_the_last_acknowledgement_both_ends_fall_silent() {
    let outcome = Test::new(100_000).run();
    let silence = outcome.ended_at.saturating_since(outcome.complete_at.unwrap_or(Instant::ZERO));
    // Three PTO after closing (RFC 9000 10.2), not the 30 s of the idle time-out.
    assert!(silence < Duration::from_secs(3), "{silence:?}");
}

#[test]
fn a_path_that_dies_ends_the_connection_after_the_idle_time_out() {
    let dies = Instant::ZERO + Duration::from_millis(200);
    let drops = |now: Instant, _: usize, _: u64| now >= dies;
    let outcome = Test { drops: &drops, ..Test::new(10_000_000) }.run();
    assert!(outcome.delivered < 10_000_000);
    assert_eq!(outcome.failures, [CLIENT, SERVER].map(|_| Some("timed out".to_owned())));
    assert!((30.0..32.0).contains(&outcome.ended_at.as_secs_f64()), "{:?}", outcome.ended_at);
}

#[test]
fn a_server_that_nothing_reaches_sends_nothing() {
    let drops = |_: Instant, from: usize, _: u64| from == CLIENT;
    let outcome = Test { drops: &drops, ..Test::new(1000) }.run();
    assert!(outcome.sizes[SERVER].is_empty() && outcome.sizes[CLIENT].len() > 3);
    assert_eq!(outcome.failures[CLIENT].as_deref(), Some("timed out"));
}

#[test]
fn the_sender_can_ask_for_fewer_acknowledgements() {
    let acks = |ack_frequency| {
        let config = Config { ack_frequency, ..config() };
        let outcome = Test { config, ..Test::new(1_000_000) }.run();
        assert_eq!(outcome.delivered, 1_000_000);
        outcome.sizes[CLIENT].len() as f64 / outcome.sizes[SERVER].len() as f64
    };
    let usual = acks(None);
    let fewer = acks(Some(AckFrequency { packets: 10, max_delay: None }));
    assert!((0.4..0.6).contains(&usual), "RFC 9000 13.2.2: one for two, not {usual}");
    assert!(fewer < 0.2, "{fewer}");
}

#[test]
fn the_receive_window_bounds_what_is_under_way() {
    let config = Config { receive_window: 20_000, ..config() };
    let outcome = Test { config, ..Test::new(1_000_000) }.run();
    // 20 kB in 42 ms or more: a window per round trip.
    let rate = 1_000_000.0 / (ms(outcome.complete_at) - 63.0);
    assert!((200.0..20_000.0 / 42.0).contains(&rate), "{rate} kB/s");
}
