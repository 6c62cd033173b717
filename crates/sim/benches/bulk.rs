//! CPU time of bulk TCP on a wire, one JSON line per case.
//!
//! `cargo bench -p airpath-sim -- --flows 1 --rate-mbps 230 --rtt-ms 30 --seconds 30` (`--acks`:
//! with the per-ACK table, `--window-segments N`: a fixed window and a path that it fills,
//! `--loss-percent P`: random loss after the queue, `--feature NAME`: also one of [`FEATURES`],
//! `--counted`: reads no clock, so that callgrind can count it).

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use airpath_base::{Direction, Duration, Rate};
use airpath_path::{
    Aqm, DelayConfig, LinkConfig, LossConfig, LossProcess, QueueConfig, ServiceConfig, StageConfig,
};
use airpath_scenario::{
    EmulationConfig, FlowConfig, NamedStage, RunConfig, Scenario, StageId, TcpConfig, Traffic,
};
use airpath_tcp::{
    BufferConfig, CongestionConfig, CubicArithmetic, CubicConfig, DelayedAckConfig, EndpointConfig,
    LossDetection, OffloadConfig, PacingConfig, Reduction, RtoConfig, RtoEstimator,
};

fn main() {
    let arguments = Arguments::parse(std::env::args().skip(1));
    let scenario = arguments.scenario();
    // callgrind has no CPU clock, and counts without one.
    let clock = || if arguments.counted { 0.0 } else { cpu_seconds() };
    let before = clock();
    let outcome = airpath_sim::simulate(&scenario, 1, &mut |_| true).expect("never stopped");
    let cpu = clock() - before;
    let flows = &outcome.summary.flows;
    let segments: u64 = flows.iter().map(|flow| flow.bytes_delivered / u64::from(MSS)).sum();
    let goodput: f64 = flows.iter().filter_map(|flow| flow.goodput_mbps).sum();
    let retransmitted: u64 = flows.iter().filter_map(|flow| flow.retransmitted_segments).sum();
    println!(
        "{{\"tool\":\"airpath\",\"flows\":{},\"rate_mbps\":{},\"rtt_ms\":{},\"simulated_s\":{},\
         \"cpu_s\":{cpu:.4},\"delivered_segments\":{segments},\"goodput_mbps\":{goodput:.2},\
         \"retransmissions\":{retransmitted},\"events\":{},\"ns_per_segment\":{:.1},\
         \"packets_per_cpu_s\":{:.0},\"simulated_s_per_cpu_s\":{:.1}}}",
        arguments.flows,
        arguments.rate_mbps,
        arguments.rtt_ms,
        arguments.seconds,
        outcome.summary.events,
        cpu * 1e9 / segments as f64,
        // Every second segment is acknowledged.
        segments as f64 * 1.5 / cpu,
        arguments.seconds as f64 / cpu,
    );
}

const MSS: u32 = 1448;
const HEADER: u32 = 52;

struct Arguments {
    flows: u64,
    rate_mbps: u64,
    rtt_ms: u64,
    seconds: u64,
    window_segments: Option<u32>,
    loss_percent: u64,
    features: Vec<Feature>,
    acks: bool,
    counted: bool,
}

/// Enables something that plain TCP does not have.
type Feature = fn(&mut EndpointConfig);

/// Values of `--feature`.
const FEATURES: [(&str, Feature); 12] = [
    ("rack-tlp", |end| {
        end.recovery.detection = LossDetection::Rack;
        end.recovery.tail_loss_probe = true;
    }),
    ("prr", |end| end.recovery.reduction = Reduction::Prr),
    ("undo", |end| {
        end.recovery.frto = true;
        end.recovery.undo_by_timestamps = true;
        end.recovery.undo_by_dsack = true;
        end.dsack = true;
    }),
    ("linux-rto", |end| end.rto.estimator = RtoEstimator::Linux),
    ("validation", |end| {
        end.validation.half_used_grows = true;
        end.validation.decays = true;
    }),
    ("quick-acks", |end| {
        end.delayed_ack.quick_segments = 16;
        end.delayed_ack.max_timeout = Duration::from_millis(200);
    }),
    ("window-tuning", |end| {
        end.receive_buffer = BufferConfig { initial: 65_536, max: 64 << 20, tuned: true };
    }),
    ("pacing", |end| end.pacing = Some(PacingConfig::LINUX)),
    ("offload", |end| {
        end.offload = Some(OffloadConfig {
            max_bytes: 65_536,
            time: Duration::from_nanos(976_562),
            min_segments: 2,
            window_divisor: 3,
            ack_within: Duration::ZERO,
            push: true,
        });
    }),
    ("linux-cubic", |end| {
        end.congestion = CongestionConfig::Cubic(CubicConfig {
            arithmetic: CubicArithmetic::Linux,
            ..CubicConfig::default()
        });
    }),
    ("bbr", |end| end.congestion = CongestionConfig::Bbr1 { seed: 1 }),
    ("bbr3", |end| end.congestion = CongestionConfig::Bbr3 { seed: 1 }),
];

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Self {
        let mut parsed = Self {
            flows: 1,
            rate_mbps: 230,
            rtt_ms: 30,
            seconds: 30,
            window_segments: None,
            loss_percent: 0,
            features: Vec::new(),
            acks: false,
            counted: false,
        };
        while let Some(word) = words.next() {
            if word == "--feature" {
                let name = words.next().unwrap_or_default();
                let feature = FEATURES.iter().find(|(known, _)| *known == name);
                let names = FEATURES.map(|(known, _)| known).join(", ");
                let (_, feature) =
                    feature.unwrap_or_else(|| panic!("{name:?} is not one of {names}"));
                parsed.features.push(*feature);
                continue;
            }
            let mut number = || -> u64 {
                let text = words.next().unwrap_or_default();
                text.parse().unwrap_or_else(|_| panic!("{word} wants a whole number, not {text:?}"))
            };
            match word.as_str() {
                "--flows" => parsed.flows = number(),
                "--rate-mbps" => parsed.rate_mbps = number(),
                "--rtt-ms" => parsed.rtt_ms = number(),
                "--seconds" => parsed.seconds = number(),
                "--window-segments" => parsed.window_segments = Some(number() as u32),
                "--loss-percent" => parsed.loss_percent = number(),
                "--acks" => parsed.acks = true,
                "--counted" => parsed.counted = true,
                "--bench" => {} // cargo adds it
                _ => panic!("unknown argument {word:?}"),
            }
        }
        parsed
    }

    fn scenario(&self) -> Scenario {
        let half = Duration::from_millis(self.rtt_ms) / 2;
        let rate = Rate::from_bps(self.rate_mbps * 1_000_000).expect("a rate above zero");
        let bdp = self.rate_mbps * self.rtt_ms * 1000 / 8;
        let packets = match self.window_segments {
            // A fixed window always fits into the queue.
            Some(window) => window,
            None => (bdp / u64::from(MSS + HEADER)) as u32,
        };
        let queue = QueueConfig { packets: Some(packets), bytes: None, aqm: Aqm::DropTail };
        let link = StageConfig::Link(LinkConfig { service: ServiceConfig::Rate(rate), queue });
        let delay = || StageConfig::Delay(DelayConfig { base: half, jitter: None });
        let named = |direction, index, kind, stage| {
            NamedStage::new(StageId { direction, index, kind }, stage)
        };
        let congestion = match self.window_segments {
            Some(segments) => CongestionConfig::Fixed { segments },
            None => CongestionConfig::Cubic(CubicConfig::default()),
        };
        let mut endpoint = EndpointConfig {
            mss: MSS,
            header: HEADER,
            initial_window: 10,
            congestion,
            rto: RtoConfig {
                initial: Duration::from_secs(1),
                min: Duration::from_millis(200),
                max: Duration::from_secs(120),
                estimator: RtoEstimator::Rfc6298,
            },
            delayed_ack: DelayedAckConfig {
                segments: 2,
                timeout: Duration::from_millis(40),
                max_timeout: Duration::from_millis(40),
                ..EndpointConfig::default().delayed_ack
            },
            timestamps: true,
            sack: true,
            window_scaling: true,
            send_buffer: 1 << 30,
            receive_buffer: BufferConfig::fixed(1 << 30),
            ..EndpointConfig::default()
        };
        for feature in &self.features {
            feature(&mut endpoint);
        }
        let mut down = vec![named(Direction::Downlink, 0, "link", link)];
        if self.loss_percent > 0 {
            let probability = self.loss_percent as f64 / 100.0;
            down.push(named(
                Direction::Downlink,
                1,
                "loss",
                StageConfig::Loss(LossConfig {
                    process: LossProcess::Random { probability },
                    min_bytes: 0,
                }),
            ));
        }
        down.push(named(Direction::Downlink, 1, "delay", delay()));
        let flow = |index: u64| FlowConfig {
            index: index as usize,
            group: None,
            id: format!("bulk-{index}"),
            direction: Direction::Downlink,
            start: Duration::ZERO,
            ue: 0,
            traffic: Traffic::Bulk {
                tcp: TcpConfig {
                    profile: "bench".to_owned(),
                    sender: endpoint.clone(),
                    receiver: endpoint.clone(),
                    sender_opens: true,
                    hand_up: None,
                },
                duration: None,
                write: None,
            },
        };
        Scenario {
            programs: Vec::new(),
            name: "bench".to_owned(),
            title: String::new(),
            run: RunConfig {
                seed: 1,
                duration: Duration::from_secs(self.seconds),
                sample_interval: Duration::from_millis(100),
                ack_table: self.acks,
                radio_log: false,
            },
            core: None,
            emulation: EmulationConfig::default(),
            down,
            up: vec![named(Direction::Uplink, 0, "delay", delay())],
            proxy: None,
            radio: None,
            flows: (0..self.flows).map(flow).collect(),
        }
    }
}

/// CPU time of this process.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
