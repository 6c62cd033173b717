//! Turns a [`Checked`] document into the [`Scenario`] that the drivers take.
//!
//! Only the model can still refuse a cell or a UE: each `expect` states what the checks have
//! established.

mod core_network;
mod queue;
mod radio;

use airpath_path::{
    DelayConfig, Distribution, Jitter, LinkConfig, LossConfig, LossProcess, MiddleboxKind,
    ServiceConfig, StageConfig,
};
use airpath_tcp::{
    AckTrain, AggregationConfig, BufferConfig, CongestionConfig, CubicArithmetic, CubicConfig,
    DelayedAckConfig, EarlyExit, EcnConfig, EndpointConfig, GrowthUnit, Halved, HystartConfig,
    IdleRestart, LossDetection, OffloadConfig, PacingConfig, ReaderConfig, RecoveryConfig,
    Reduction, RenoConfig, RightSizing, RoundStart, RouteConfig, RouteMetrics, RouteRule,
    RtoConfig, RtoEstimator, SackCompressionConfig, SendMemoryConfig, SlowStartConfig,
    ValidationConfig,
};

use airpath_base::{Direction, Duration};

use crate::checked::Checked;
use crate::flow::flow_ids;
use crate::get::{Get, narrow};
use crate::model::{
    EmulationConfig, FlowConfig, GtpuLink, HandUpConfig, NamedStage, ObserverKind, PacketIo,
    ProgramConfig, ProxyConfig, ProxyEnds, RunConfig, Scenario, SlowStartOf, StageId, TcpConfig,
    Traffic,
};
use crate::numbers;
use crate::problem::Problems;
use crate::programs;
use crate::proxy;
use crate::read::Fields;
use crate::spec::{
    AfterIdle, Arithmetic, Congestion, CwndReduction, Detection, Ecn, Estimator, FlowDirection,
    FlowKind, Io, JitterDistribution, KeptMetrics, Observer, Opener, QuicCongestion, RenoGrowsBy,
    RenoHalves, SlowStart, SlowStartSource, StageKind, TuningRule, WaitFor,
};
use crate::stage::Stage;

/// Builds the scenario from a document that has no problems, and reports what the model refuses.
pub(crate) fn scenario(document: &Checked, problems: &mut Problems) -> Scenario {
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
        core: document.core.as_ref().map(|core| core_network::core(core, document.radio.as_ref())),
        down: stages(Direction::Downlink, &document.down.on),
        up: stages(Direction::Uplink, &document.up.on),
        proxy: proxy_ends(Direction::Downlink, &document.down.on)
            .zip(proxy_ends(Direction::Uplink, &document.up.on))
            .map(|(down, up)| ProxyConfig { down, up }),
        radio: document.radio.as_ref().map(|radio| radio::radio(radio, problems)),
        flows: document
            .flows
            .in_order()
            .enumerate()
            .filter(|(_, fields)| fields.enabled())
            .flat_map(|(index, fields)| flows(fields, index, ue_of(fields, document)))
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
        host_bound: get.time("host_bound_ms"),
        coalesce_bytes: get.count("coalesce_bytes") as u32,
        spin: get.time("spin_ms"),
        keep_awake: get.flag("keep_awake"),
        gtpu: get.flag("gtpu").then(|| GtpuLink { mtu: get.0.count("gtpu_mtu_bytes").map(narrow) }),
        io: match get.chosen() {
            Io::Tun => PacketIo::Tun,
            Io::Packet => PacketIo::Packet,
            Io::Auto => PacketIo::Auto,
        },
        observer: match get.chosen() {
            Observer::Bpf => ObserverKind::Bpf,
            Observer::Poll => ObserverKind::Poll,
            Observer::None => ObserverKind::None,
            Observer::Auto => ObserverKind::Auto,
        },
        observer_poll: get.time("observer_poll_ms"),
        slow_start: match get.chosen() {
            SlowStartSource::Profile => SlowStartOf::Profile,
            SlowStartSource::Kernel => SlowStartOf::Kernel,
        },
    }
}

fn program(get: &Get<'_>, document: &Checked) -> ProgramConfig {
    ProgramConfig {
        name: get.text("name").to_owned(),
        place: programs::place(get.text("at"), document.radio.as_ref())
            .expect("checked, or a problem"),
        command: get.text("command").to_owned(),
        start: get.time("start_s"),
        service: match get.chosen() {
            WaitFor::Listen => true,
            WaitFor::Nothing => false,
        },
        ends_run: get.flag("ends_run"),
    }
}

/// Names and configures the stages of one direction. The proxy is left out, but its position counts
/// in the names.
fn stages(direction: Direction, stages: &[Stage]) -> Vec<NamedStage> {
    let named = |stage: &Stage| {
        Some(NamedStage::new(id(direction, stage), stage_config(direction, stage)?))
    };
    stages.iter().filter_map(named).collect()
}

fn id(direction: Direction, stage: &Stage) -> StageId {
    StageId { direction, index: stage.index, kind: Get(&stage.fields).variant() }
}

fn proxy_ends(direction: Direction, stages: &[Stage]) -> Option<ProxyEnds> {
    let (before, proxy, _) = proxy::split(stages);
    let proxy = proxy?;
    let (id, get) = (id(direction, proxy), Get(&proxy.fields));
    Some(ProxyEnds {
        id,
        name: id.to_string(),
        stages_before: before.len(),
        profile: get.text("profile").to_owned(),
        endpoint: EndpointConfig { reader: ReaderConfig::Driver, ..endpoint(&get) },
    })
}

/// The path model's configuration of a stage; `None` for a proxy, which is not a stage of the path
/// model.
fn stage_config(direction: Direction, stage: &Stage) -> Option<StageConfig> {
    let get = Get(&stage.fields);
    let kind = get.chosen();
    Some(match kind {
        StageKind::Proxy => return None,
        StageKind::Link => StageConfig::Link(LinkConfig {
            service: ServiceConfig::Rate(get.rate("rate_mbps")),
            queue: queue::config(&get),
        }),
        StageKind::Trace => StageConfig::Link(LinkConfig {
            service: ServiceConfig::Trace(stage.trace.clone().expect("loaded, or a problem")),
            queue: queue::config(&get),
        }),
        StageKind::Delay => {
            StageConfig::Delay(DelayConfig { base: get.time("delay_ms"), jitter: jitter(&get) })
        }
        StageKind::Batch => StageConfig::Batch { interval: get.time("interval_ms") },
        StageKind::Loss | StageKind::GilbertElliott => StageConfig::Loss(loss(kind, &get)),
        StageKind::Shaper => StageConfig::Link(LinkConfig {
            service: ServiceConfig::Bucket {
                rate: get.rate("rate_mbps"),
                burst: get.count("burst_bytes"),
            },
            queue: queue::config(&get),
        }),
        StageKind::Policer => core_network::policer(&get),
        StageKind::Gtpu | StageKind::Vpn => core_network::tunnel_end(kind, &get),
        StageKind::Offload => core_network::offload(&get),
        StageKind::Mtu => StageConfig::Mtu { bytes: get.narrow("mtu_bytes") },
        StageKind::Host => core_network::host(&get),
        StageKind::Modem => core_network::modem(&get),
        StageKind::Server => core_network::server(&get),
        StageKind::Nat => core_network::middlebox(MiddleboxKind::Nat, direction, &get),
        StageKind::Firewall => core_network::middlebox(MiddleboxKind::Firewall, direction, &get),
    })
}

fn jitter(get: &Get<'_>) -> Option<Jitter> {
    let size = get.time("jitter_ms");
    (size > Duration::ZERO).then(|| Jitter {
        distribution: match get.chosen() {
            JitterDistribution::Exponential => Distribution::Exponential { mean: size },
            JitterDistribution::HalfNormal => Distribution::HalfNormal { sd: size },
            JitterDistribution::Uniform => Distribution::Uniform { max: size },
        },
        keep_order: get.flag("keep_order"),
        together: false,
    })
}

/// Index of the UE that a flow belongs to; 0 without a radio.
fn ue_of(flow: &Fields, document: &Checked) -> usize {
    let radio = document.radio.as_ref();
    radio.and_then(|radio| radio.index(flow.text("ue")?)).unwrap_or(0)
}

/// The flow that a table stands for, or the several identical ones.
fn flows(fields: &Fields, index: usize, ue: usize) -> Vec<FlowConfig> {
    let one = flow(&Get(fields), index, ue);
    let several = fields.count("streams").is_some();
    let each = |id| FlowConfig { id, group: several.then(|| one.id.clone()), ..one.clone() };
    flow_ids(fields).map(each).collect()
}

fn flow(get: &Get<'_>, index: usize, ue: usize) -> FlowConfig {
    let traffic = match get.chosen() {
        FlowKind::Bulk => Traffic::Bulk {
            tcp: tcp(get),
            duration: get.0.time("duration_s"),
            write: get.0.count("write_bytes"),
        },
        FlowKind::File => Traffic::File {
            tcp: tcp(get),
            size: get.count("size_bytes"),
            writes: get.0.text("write_times_s").map_or_else(Vec::new, |times| {
                numbers::times(times).expect("checked when it was read")
            }),
        },
        FlowKind::Ping => Traffic::Ping {
            interval: get.time("interval_ms"),
            packet_bytes: get.narrow("packet_bytes"),
            count: get.0.count("count"),
        },
        FlowKind::Udp => Traffic::Udp {
            rate: get.rate("rate_mbps"),
            packet_bytes: get.narrow("packet_bytes"),
            duration: get.0.time("duration_s"),
            receiver_opens: get.chosen::<Opener>() == Opener::Receiver,
        },
        FlowKind::Quic => Traffic::Quic {
            quic: quic(get),
            size: get.0.count("size_bytes"),
            duration: get.0.time("duration_s"),
        },
    };
    FlowConfig {
        index,
        id: get.text("id").to_owned(),
        group: None,
        direction: match get.chosen() {
            FlowDirection::Up => Direction::Uplink,
            FlowDirection::Down => Direction::Downlink,
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
        sender: EndpointConfig { route: route(get), ..endpoint.clone() },
        receiver: endpoint,
        sender_opens: get.chosen::<Opener>() == Opener::Sender,
        hand_up: hand_up(get),
    }
}

fn route(get: &Get<'_>) -> RouteConfig {
    RouteConfig {
        rule: match get.chosen() {
            KeptMetrics::None => None,
            KeptMetrics::Linux => Some(RouteRule::Linux),
            KeptMetrics::LinuxSsthresh => Some(RouteRule::LinuxSsthresh),
            KeptMetrics::Bsd => Some(RouteRule::Bsd),
        },
        known: RouteMetrics {
            ssthresh: get.0.real("route.ssthresh_segments"),
            ..RouteMetrics::default()
        },
    }
}

fn quic(get: &Get<'_>) -> airpath_quic::Config {
    let mtu = |name| get.count(name) as u16;
    airpath_quic::Config {
        congestion: match get.chosen() {
            QuicCongestion::Cubic => airpath_quic::Congestion::Cubic,
            QuicCongestion::NewReno => airpath_quic::Congestion::NewReno,
        },
        initial_window: get.count("initial_window_bytes"),
        initial_rtt: get.time("initial_rtt_ms"),
        initial_mtu: mtu("mtu.initial_bytes"),
        max_mtu: mtu("mtu.max_bytes"),
        receive_window: get.count("receive_window_bytes"),
        send_window: get.count("send_window_bytes"),
        ack_frequency: get.0.count("ack.packets").map(|packets| airpath_quic::AckFrequency {
            packets: narrow(packets),
            max_delay: get.0.time("ack.delay_ms"),
        }),
        idle_timeout: get.time("idle_timeout_s"),
        certificate_bytes: get.0.count("certificate_bytes").map(narrow),
    }
}

fn hand_up(get: &Get<'_>) -> Option<HandUpConfig> {
    let [burst, segment] =
        ["aggregation.hand_up_ms", "aggregation.hand_up_segment_ms"].map(|key| get.0.time(key));
    (burst.is_some() || segment.is_some()).then(|| HandUpConfig {
        burst: burst.unwrap_or_default(),
        segment: segment.unwrap_or_default(),
    })
}

fn congestion(get: &Get<'_>) -> CongestionConfig {
    match get.chosen() {
        Congestion::Reno => CongestionConfig::Reno(RenoConfig {
            halves: match get.chosen() {
                RenoHalves::Cwnd => Halved::Cwnd,
                RenoHalves::Flight => Halved::Flight,
            },
            grows_by: match get.chosen() {
                RenoGrowsBy::Acknowledgements => GrowthUnit::Acknowledgements,
                RenoGrowsBy::Segments => GrowthUnit::Segments,
            },
        }),
        // The run seeds each flow separately.
        Congestion::Bbr => CongestionConfig::Bbr1 { seed: 0 },
        Congestion::Bbr3 => CongestionConfig::Bbr3 { seed: 0 },
        Congestion::Fixed => {
            CongestionConfig::Fixed { segments: get.narrow("fixed_window_segments") }
        }
        Congestion::Cubic => CongestionConfig::Cubic(CubicConfig {
            fast_convergence: get.flag("cubic.fast_convergence"),
            arithmetic: match get.chosen() {
                Arithmetic::Linux => CubicArithmetic::Linux,
                Arithmetic::Rfc => CubicArithmetic::Rfc9438,
            },
            c: get.real("cubic.c"),
            beta: get.real("cubic.beta"),
        }),
    }
}

fn delayed_ack(get: &Get<'_>) -> DelayedAckConfig {
    DelayedAckConfig {
        segments: get.narrow("ack.delayed_segments"),
        timeout: get.time("ack.delay_ms"),
        max_timeout: get.time("ack.max_delay_ms"),
        ticking: get.flag("ack.ticking"),
        quick_segments: get.narrow("ack.quick_segments"),
        pushed_at_once: get.flag("ack.pushed_at_once"),
        handshake_at_once: get.flag("ack.handshake_at_once"),
        wake: get.time("ack.wake_ms"),
        repeat_limit: get.time("ack.repeat_limit_ms"),
    }
}

fn endpoint(get: &Get<'_>) -> EndpointConfig {
    EndpointConfig {
        mss: get.narrow("mss_bytes"),
        header: get.narrow("options.header_bytes"),
        initial_window: get.narrow("initial_window_segments"),
        slow_start: SlowStartConfig {
            limit: match get.narrow("cwnd.slow_start_limit_segments") {
                0 => None,
                limit => Some(limit),
            },
            exit: early_exit(get),
        },
        congestion: congestion(get),
        rto: RtoConfig {
            initial: get.time("rto.initial_ms"),
            min: get.time("rto.min_ms"),
            max: get.time("rto.max_ms"),
            estimator: match get.chosen() {
                Estimator::Linux => RtoEstimator::Linux,
                Estimator::Rfc6298 => RtoEstimator::Rfc6298,
            },
        },
        recovery: recovery(get),
        pacing: get.flag("pacing.enabled").then(|| pacing(get)),
        offload: offload(get),
        validation: ValidationConfig {
            half_used_grows: get.flag("cwnd.grows_half_used"),
            delivered_grows: get.flag("cwnd.grows_by_delivered"),
            decays: get.flag("cwnd.decays"),
            idle: match get.chosen() {
                AfterIdle::Restart => IdleRestart::Restart,
                AfterIdle::Decay => IdleRestart::Decay,
                AfterIdle::Keep => IdleRestart::Keep,
            },
        },
        delayed_ack: delayed_ack(get),
        sack_compression: SackCompressionConfig {
            delay: get.time("ack.sack_compression_ms"),
            acks: get.narrow("ack.sack_compression_acks"),
            slack: get.time("ack.sack_compression_slack_ms"),
        },
        aggregation: match get.narrow("aggregation.max_bytes") {
            0 => None,
            max_bytes => {
                Some(AggregationConfig { time: get.time("aggregation.time_ms"), max_bytes })
            }
        },
        timestamps: get.flag("options.timestamps"),
        timestamp_tick: get.time("options.timestamp_tick_ms"),
        syn_linear_timeouts: get.narrow("rto.syn_linear_timeouts"),
        sack: get.flag("options.sack"),
        dsack: get.flag("ack.dsack"),
        ecn: match get.chosen() {
            Ecn::Classic => EcnConfig::Classic,
            Ecn::Off => EcnConfig::Off,
        },
        window_scaling: get.flag("options.window_scaling"),
        send_buffer: get.count("send_buffer_bytes"),
        send_buffer_factor: Some(get.narrow("buffer.send_factor")).filter(|&factor| factor > 0),
        send_memory: send_memory(get),
        receive_buffer: receive_buffer(get),
        right_sizing: match get.chosen() {
            TuningRule::Linux6_16 => RightSizing::Linux6_16,
            TuningRule::Linux4_19 => RightSizing::Linux4_19,
        },
        reader: reader(get),
        route: RouteConfig::default(),
    }
}

fn loss(kind: StageKind, get: &Get<'_>) -> LossConfig {
    let process = if kind == StageKind::GilbertElliott {
        LossProcess::GilbertElliott {
            good_to_bad: get.fraction("good_to_bad"),
            bad_to_good: get.fraction("bad_to_good"),
            loss_good: get.fraction("loss_good"),
            loss_bad: get.fraction("loss_bad"),
        }
    } else if let Some(period) = get.0.count("period") {
        LossProcess::Periodic { period }
    } else if let Some(packets) = get.0.text("packets") {
        LossProcess::Numbered {
            numbers: numbers::parse(packets).expect("checked when it was read"),
        }
    } else {
        LossProcess::Random { probability: get.fraction("probability") }
    };
    LossConfig { process, min_bytes: get.narrow("min_packet_bytes") }
}

fn reader(get: &Get<'_>) -> ReaderConfig {
    match (get.0.rate("read_rate_mbps"), get.0.time("application.read_delay_ms")) {
        (Some(rate), _) => ReaderConfig::Rate(rate),
        (None, Some(delay)) => ReaderConfig::After(delay),
        (None, None) => ReaderConfig::AtOnce,
    }
}

fn send_memory(get: &Get<'_>) -> Option<SendMemoryConfig> {
    let segment = get.narrow("buffer.send_segment_bytes");
    (segment > 0).then(|| SendMemoryConfig {
        burst_overhead: get.narrow("buffer.send_burst_bytes"),
        segment,
        wake_divisor: get.narrow("buffer.send_wake_divisor"),
    })
}

fn receive_buffer(get: &Get<'_>) -> BufferConfig {
    let max = get.count("receive_buffer_bytes");
    match get.count("buffer.initial_receive_bytes") {
        0 => BufferConfig::fixed(max),
        initial => BufferConfig { initial, max, tuned: get.flag("buffer.receive_tuning") },
    }
}

fn recovery(get: &Get<'_>) -> RecoveryConfig {
    RecoveryConfig {
        detection: match get.chosen() {
            Detection::Rack => LossDetection::Rack,
            Detection::Sack => LossDetection::Sack,
        },
        tail_loss_probe: get.flag("recovery.tail_loss_probe"),
        timer_tick: get.time("recovery.rack_timer_tick_ms"),
        reduction: match get.chosen() {
            CwndReduction::Prr => Reduction::Prr,
            CwndReduction::Immediate => Reduction::Immediate,
        },
        frto: get.flag("recovery.frto"),
        undo_by_timestamps: get.flag("recovery.undo_by_timestamps"),
        undo_by_dsack: get.flag("recovery.undo_by_dsack"),
    }
}

fn pacing(get: &Get<'_>) -> PacingConfig {
    let ratio = |name| f64::from(get.narrow(name)) / 100.0;
    PacingConfig {
        slow_start_ratio: ratio("pacing.slow_start_percent"),
        congestion_avoidance_ratio: ratio("pacing.congestion_avoidance_percent"),
    }
}

fn offload(get: &Get<'_>) -> Option<OffloadConfig> {
    let max_bytes = get.narrow("offload.max_bytes");
    (max_bytes > 0).then(|| OffloadConfig {
        max_bytes,
        time: Duration::from_nanos(1_000_000_000 >> 10),
        min_segments: 2,
        window_divisor: get.narrow("offload.window_divisor"),
        ack_within: get.time("offload.ack_within_ms"),
        push: get.flag("offload.push"),
    })
}

fn early_exit(get: &Get<'_>) -> EarlyExit {
    let mut hystart = match get.chosen() {
        SlowStart::None => return EarlyExit::None,
        SlowStart::HystartPlusPlus => return EarlyExit::HystartPlusPlus,
        SlowStart::Hystart4_19 => HystartConfig::LINUX_4_19,
        SlowStart::Hystart5_6 => HystartConfig::LINUX_5_6,
        SlowStart::Hystart5_8 => HystartConfig::LINUX_5_8,
        SlowStart::Hystart5_16 => HystartConfig::LINUX_5_16,
        SlowStart::Hystart6_14 => HystartConfig::LINUX_6_14,
    };
    if get.0.flag("hystart.ack_train") == Some(false) {
        hystart.ack_train = AckTrain::Off;
    }
    if let Some(delay) = get.0.flag("hystart.delay") {
        hystart.delay = delay;
    }
    if let Some(exits) = get.0.flag("hystart.falling_minimum_exits") {
        hystart.falling_minimum_exits = exits;
    }
    hystart.round_start = match (get.0.flag("hystart.late_reset"), hystart.round_start) {
        (Some(true), _) => RoundStart::Late,
        (Some(false), RoundStart::Late) => RoundStart::Prompt,
        (_, start) => start,
    };
    EarlyExit::Hystart(hystart)
}
