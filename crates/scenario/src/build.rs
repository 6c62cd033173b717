//! From a checked [`Document`] to the [`Scenario`] that the drivers take.
//!
//! Nothing can be wrong here any more: each `expect` states what the checks have established.

mod core_network;

use airpath_path::{
    Aqm, DelayConfig, Distribution, Jitter, LinkConfig, LossConfig, QueueConfig, ServiceConfig,
    StageConfig,
};
use airpath_tcp::{
    AckTrain, AggregationConfig, BufferConfig, CongestionConfig, CubicArithmetic, CubicConfig,
    DelayedAckConfig, EarlyExit, EcnConfig, EndpointConfig, GrowthUnit, Halved, HystartConfig,
    IdleRestart, LossDetection, OffloadConfig, PacingConfig, ReaderConfig, RecoveryConfig,
    Reduction, RenoConfig, RightSizing, RoundStart, RtoConfig, RtoEstimator, SackCompressionConfig,
    SlowStartConfig, ValidationConfig,
};

use airpath_base::{Duration, Rate};

use crate::document::{Document, Stage};
use crate::model::{
    Direction, EmulationConfig, FlowConfig, GtpuLink, NamedStage, PacketIo, ProgramConfig,
    ProxyConfig, ProxyEnds, RunConfig, Scenario, SlowStartOf, TcpConfig, Traffic, Watching,
};
use crate::programs;
use crate::proxy;
use crate::read::Fields;
use crate::subscription;

/// Builds the scenario of a document without problems.
pub(crate) fn scenario(document: &Document) -> Scenario {
    let run = Get(&document.run);
    Scenario {
        name: Get(&document.root).text("name").to_owned(),
        title: Get(&document.root).text("title").to_owned(),
        run: RunConfig {
            seed: run.count("seed"),
            duration: run.time("duration_s"),
            sample_interval: run.time("sample_interval_ms"),
            ack_table: run.flag("ack_table"),
            radio_log: run.flag("radio_log"),
        },
        emulation: emulation(&Get(&document.emulation.0)),
        core: document
            .core
            .as_ref()
            .map(|core| subscription::config(core, document.radio.as_ref())),
        down: stages("down", &document.down.on),
        up: stages("up", &document.up.on),
        proxy: proxy_ends("down", &document.down.on)
            .zip(proxy_ends("up", &document.up.on))
            .map(|(down, up)| ProxyConfig { down, up }),
        radio: document.radio.as_ref().and_then(|radio| radio.config.clone()),
        flows: document
            .flows
            .in_order()
            .enumerate()
            .filter(|(_, fields)| fields.enabled())
            .map(|(index, fields)| flow(&Get(fields), index, ue_of(fields, document)))
            .collect(),
        programs: document
            .programs
            .on
            .iter()
            .map(|fields| program(&Get(fields), document))
            .collect(),
    }
}

fn emulation(get: &Get<'_>) -> EmulationConfig {
    EmulationConfig {
        lateness_bound: get.time("lateness_bound_ms"),
        coalesce_bytes: get.count("coalesce_bytes") as u32,
        spin: get.time("spin_ms"),
        keep_awake: get.flag("keep_awake"),
        gtpu: get.flag("gtpu").then(|| GtpuLink { mtu: get.0.count("gtpu_mtu_bytes").map(narrow) }),
        io: match get.text("io") {
            "tun" => PacketIo::Tun,
            "packet" => PacketIo::Packet,
            _ => PacketIo::Auto,
        },
        watch: match get.text("watch") {
            "bpf" => Watching::Bpf,
            "poll" => Watching::Poll,
            "none" => Watching::None,
            _ => Watching::Auto,
        },
        watch_poll: get.time("watch_poll_ms"),
        slow_start: match get.text("slow_start") {
            "profile" => SlowStartOf::Profile,
            _ => SlowStartOf::Kernel,
        },
    }
}

fn program(get: &Get<'_>, document: &Document) -> ProgramConfig {
    ProgramConfig {
        name: get.text("name").to_owned(),
        place: programs::place(get.text("at"), document.radio.as_ref())
            .expect("checked, or a problem"),
        command: get.text("command").to_owned(),
        start: get.time("start_s"),
        service: get.text("wait_for") == "listen",
        ends_run: get.flag("ends_run"),
    }
}

/// The stages but for the proxy, whose place counts in their names.
fn stages(direction: &str, stages: &[Stage]) -> Vec<NamedStage> {
    let named = |stage: &Stage| {
        let stage_config = stage_config(direction, stage)?;
        Some(NamedStage { name: name(direction, stage), stage: stage_config })
    };
    stages.iter().filter_map(named).collect()
}

fn name(direction: &str, stage: &Stage) -> String {
    format!("{direction}.{}.{}", stage.index, Get(&stage.fields).variant())
}

fn proxy_ends(direction: &str, stages: &[Stage]) -> Option<ProxyEnds> {
    let (before, proxy, _) = proxy::split(stages);
    let proxy = proxy?;
    let get = Get(&proxy.fields);
    Some(ProxyEnds {
        name: name(direction, proxy),
        stages_before: before.len(),
        profile: get.text("profile").to_owned(),
        endpoint: EndpointConfig { reader: ReaderConfig::Driver, ..endpoint(&get) },
    })
}

/// `None` for a proxy, which is no stage of the path model.
fn stage_config(direction: &str, stage: &Stage) -> Option<StageConfig> {
    let get = Get(&stage.fields);
    Some(match get.variant() {
        proxy::STAGE => return None,
        "link" => StageConfig::Link(LinkConfig {
            service: ServiceConfig::Rate(get.rate("rate_mbps")),
            queue: queue(&get),
        }),
        "trace" => StageConfig::Link(LinkConfig {
            service: ServiceConfig::Trace(stage.trace.clone().expect("loaded, or a problem")),
            queue: queue(&get),
        }),
        "delay" => {
            StageConfig::Delay(DelayConfig { base: get.time("delay_ms"), jitter: jitter(&get) })
        }
        "batch" => StageConfig::Batch { interval: get.time("interval_ms") },
        "loss" => StageConfig::Loss(match stage.fields.count("period") {
            Some(period) => LossConfig::Periodic { period },
            None => LossConfig::Random { probability: get.share("probability") },
        }),
        "gilbert-elliott" => StageConfig::Loss(LossConfig::GilbertElliott {
            good_to_bad: get.share("good_to_bad"),
            bad_to_good: get.share("bad_to_good"),
            loss_good: get.share("loss_good"),
            loss_bad: get.share("loss_bad"),
        }),
        "shaper" => StageConfig::Link(LinkConfig {
            service: ServiceConfig::Bucket {
                rate: get.rate("rate_mbps"),
                burst: get.count("burst_bytes"),
            },
            queue: queue(&get),
        }),
        _ => core_network::stage_config(direction, &get),
    })
}

fn queue(get: &Get<'_>) -> QueueConfig {
    QueueConfig {
        packets: get.0.count("queue_packets").map(narrow),
        bytes: get.0.count("queue_bytes"),
        aqm: match get.text("aqm") {
            "codel" => Aqm::CoDel {
                target: get.time("codel_target_ms"),
                interval: get.time("codel_interval_ms"),
            },
            _ => Aqm::DropTail,
        },
    }
}

fn jitter(get: &Get<'_>) -> Option<Jitter> {
    let size = get.time("jitter_ms");
    (size > Duration::ZERO).then(|| Jitter {
        distribution: match get.text("jitter_distribution") {
            "exponential" => Distribution::Exponential { mean: size },
            "half-normal" => Distribution::HalfNormal { sd: size },
            _ => Distribution::Uniform { max: size },
        },
        keep_order: get.flag("keep_order"),
        together: false,
    })
}

/// Index of a flow's UE; 0 without a radio.
fn ue_of(flow: &Fields, document: &Document) -> usize {
    let radio = document.radio.as_ref();
    radio.and_then(|radio| radio.index(flow.text("ue")?)).unwrap_or(0)
}

fn flow(get: &Get<'_>, index: usize, ue: usize) -> FlowConfig {
    let traffic = match get.variant() {
        "bulk" => Traffic::Bulk { tcp: tcp(get), duration: get.0.time("duration_s") },
        "file" => Traffic::File { tcp: tcp(get), size: get.count("size_bytes") },
        "ping" => Traffic::Ping {
            interval: get.time("interval_ms"),
            packet_bytes: get.narrow("packet_bytes"),
            count: get.0.count("count"),
        },
        _ => Traffic::Udp {
            rate: get.rate("rate_mbps"),
            packet_bytes: get.narrow("packet_bytes"),
            duration: get.0.time("duration_s"),
            receiver_opens: get.text("opened_by") == "receiver",
        },
    };
    FlowConfig {
        index,
        id: get.text("id").to_owned(),
        direction: match get.text("direction") {
            "up" => Direction::Up,
            _ => Direction::Down,
        },
        start: get.time("start_s"),
        ue,
        traffic,
    }
}

fn tcp(get: &Get<'_>) -> TcpConfig {
    let endpoint = endpoint(get);
    TcpConfig {
        profile: get.text("profile").to_owned(),
        sender: endpoint.clone(),
        receiver: endpoint,
        sender_opens: get.text("opened_by") == "sender",
    }
}

fn endpoint(get: &Get<'_>) -> EndpointConfig {
    EndpointConfig {
        mss: get.narrow("mss_bytes"),
        header: get.narrow("header_bytes"),
        initial_window: get.narrow("initial_window_segments"),
        slow_start: SlowStartConfig {
            limit: match get.narrow("slow_start_limit_segments") {
                0 => None,
                limit => Some(limit),
            },
            exit: early_exit(get),
        },
        congestion: match get.text("congestion") {
            "reno" => CongestionConfig::Reno(RenoConfig {
                halves: match get.text("reno_halves") {
                    "cwnd" => Halved::Cwnd,
                    _ => Halved::Flight,
                },
                grows_by: match get.text("reno_grows_by") {
                    "acknowledgements" => GrowthUnit::Acknowledgements,
                    _ => GrowthUnit::Segments,
                },
            }),
            // The run gives each flow a seed of its own.
            "bbr" => CongestionConfig::Bbr1 { seed: 0 },
            "bbr3" => CongestionConfig::Bbr3 { seed: 0 },
            "fixed" => CongestionConfig::Fixed { segments: get.narrow("fixed_window_segments") },
            _ => CongestionConfig::Cubic(CubicConfig {
                fast_convergence: get.flag("cubic_fast_convergence"),
                arithmetic: match get.text("cubic_arithmetic") {
                    "linux" => CubicArithmetic::Linux,
                    _ => CubicArithmetic::Rfc9438,
                },
                c: get.real("cubic_c"),
                beta: get.real("cubic_beta"),
            }),
        },
        rto: RtoConfig {
            initial: get.time("initial_rto_ms"),
            min: get.time("min_rto_ms"),
            max: get.time("max_rto_ms"),
            estimator: match get.text("rto_estimator") {
                "linux" => RtoEstimator::Linux,
                _ => RtoEstimator::Rfc6298,
            },
        },
        recovery: recovery(get),
        pacing: get.flag("pacing").then(|| pacing(get)),
        offload: offload(get),
        validation: ValidationConfig {
            half_used_grows: get.flag("cwnd_grows_half_used"),
            delivered_grows: get.flag("cwnd_grows_by_delivered"),
            decays: get.flag("cwnd_decays"),
            idle: match get.text("after_idle") {
                "restart" => IdleRestart::Restart,
                "decay" => IdleRestart::Decay,
                _ => IdleRestart::Keep,
            },
        },
        delayed_ack: DelayedAckConfig {
            segments: get.narrow("delayed_ack_segments"),
            timeout: get.time("delayed_ack_ms"),
            max_timeout: get.time("delayed_ack_max_ms"),
            ticking: get.flag("delayed_ack_ticking"),
            quick_segments: get.narrow("quick_ack_segments"),
            pushed_at_once: get.flag("ack_pushed_at_once"),
        },
        sack_compression: SackCompressionConfig {
            delay: get.time("sack_compression_ms"),
            acks: get.narrow("sack_compression_acks"),
            slack: get.time("sack_compression_slack_ms"),
        },
        aggregation: match get.narrow("aggregation_bytes") {
            0 => None,
            max_bytes => Some(AggregationConfig { time: get.time("aggregation_ms"), max_bytes }),
        },
        timestamps: get.flag("timestamps"),
        sack: get.flag("sack"),
        dsack: get.flag("dsack"),
        ecn: match get.text("ecn") {
            "classic" => EcnConfig::Classic,
            _ => EcnConfig::Off,
        },
        window_scaling: get.flag("window_scaling"),
        send_buffer: get.count("send_buffer_bytes"),
        send_buffer_factor: Some(get.narrow("send_buffer_factor")).filter(|&factor| factor > 0),
        receive_buffer: receive_buffer(get),
        right_sizing: match get.text("receive_buffer_tuning_rule") {
            "linux-6.16" => RightSizing::Linux6_16,
            _ => RightSizing::Linux4_19,
        },
        reader: reader(get),
    }
}

fn reader(get: &Get<'_>) -> ReaderConfig {
    match (get.0.rate("read_rate_mbps"), get.0.time("read_delay_ms")) {
        (Some(rate), _) => ReaderConfig::Rate(rate),
        (None, Some(delay)) => ReaderConfig::After(delay),
        (None, None) => ReaderConfig::AtOnce,
    }
}

fn receive_buffer(get: &Get<'_>) -> BufferConfig {
    let max = get.count("receive_buffer_bytes");
    match get.count("initial_receive_buffer_bytes") {
        0 => BufferConfig::fixed(max),
        initial => BufferConfig { initial, max, tuned: get.flag("receive_buffer_tuning") },
    }
}

fn recovery(get: &Get<'_>) -> RecoveryConfig {
    RecoveryConfig {
        detection: match get.text("loss_detection") {
            "rack" => LossDetection::Rack,
            _ => LossDetection::Sack,
        },
        tail_loss_probe: get.flag("tail_loss_probe"),
        timer_tick: get.time("rack_timer_tick_ms"),
        reduction: match get.text("cwnd_reduction") {
            "prr" => Reduction::Prr,
            _ => Reduction::Immediate,
        },
        frto: get.flag("frto"),
        undo_by_timestamps: get.flag("undo_by_timestamps"),
        undo_by_dsack: get.flag("undo_by_dsack"),
    }
}

fn pacing(get: &Get<'_>) -> PacingConfig {
    let ratio = |name| f64::from(get.narrow(name)) / 100.0;
    PacingConfig {
        slow_start_ratio: ratio("pacing_slow_start_percent"),
        congestion_avoidance_ratio: ratio("pacing_congestion_avoidance_percent"),
    }
}

fn offload(get: &Get<'_>) -> Option<OffloadConfig> {
    let max_bytes = get.narrow("offload_bytes");
    (max_bytes > 0).then(|| OffloadConfig {
        max_bytes,
        time: Duration::from_nanos(1_000_000_000 >> 10),
        min_segments: 2,
        window_divisor: get.narrow("offload_window_divisor"),
        push: get.flag("offload_push"),
    })
}

fn early_exit(get: &Get<'_>) -> EarlyExit {
    let mut hystart = match get.text("slow_start") {
        "none" => return EarlyExit::None,
        "hystart++" => return EarlyExit::HystartPlusPlus,
        "hystart-4.19" => HystartConfig::LINUX_4_19,
        "hystart-5.6" => HystartConfig::LINUX_5_6,
        "hystart-5.8" => HystartConfig::LINUX_5_8,
        "hystart-5.16" => HystartConfig::LINUX_5_16,
        _ => HystartConfig::LINUX_6_14,
    };
    if get.0.flag("hystart_ack_train") == Some(false) {
        hystart.ack_train = AckTrain::Off;
    }
    if let Some(delay) = get.0.flag("hystart_delay") {
        hystart.delay = delay;
    }
    if let Some(exits) = get.0.flag("hystart_falling_minimum_exits") {
        hystart.falling_minimum_exits = exits;
    }
    hystart.round_start = match (get.0.flag("hystart_late_reset"), hystart.round_start) {
        (Some(true), _) => RoundStart::Late,
        (Some(false), RoundStart::Late) => RoundStart::Prompt,
        (_, start) => start,
    };
    EarlyExit::Hystart(hystart)
}

/// Settings that a complete table has.
pub(crate) struct Get<'a>(pub(crate) &'a Fields);

const COMPLETE: &str = "a complete table has its required keys and defaults";

impl Get<'_> {
    /// The selector's value.
    pub(crate) fn variant(&self) -> &'static str {
        self.0.variant.expect("a table without its selector is a problem")
    }

    /// A setting that is text.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.text(name).expect(COMPLETE)
    }

    /// A setting that is a flag.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.flag(name).expect(COMPLETE)
    }

    /// A setting that is a whole number.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.0.count(name).expect(COMPLETE)
    }

    /// The same, below 2^32.
    pub(crate) fn narrow(&self, name: &str) -> u32 {
        narrow(self.count(name))
    }

    /// A setting that is a probability.
    pub(crate) fn share(&self, name: &str) -> f64 {
        self.0.share(name).expect(COMPLETE)
    }

    /// A setting that is a number with a fraction.
    pub(crate) fn real(&self, name: &str) -> f64 {
        self.0.real(name).expect(COMPLETE)
    }

    /// A setting that is a length of time.
    pub(crate) fn time(&self, name: &str) -> Duration {
        self.0.time(name).expect(COMPLETE)
    }

    /// A setting that is a bit rate.
    pub(crate) fn rate(&self, name: &str) -> Rate {
        self.0.rate(name).expect(COMPLETE)
    }
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).expect("the key's range ends below 2^32")
}
