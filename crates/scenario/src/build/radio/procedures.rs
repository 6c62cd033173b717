//! The UE's MAC procedures and RRC states.

use airpath_base::Duration;
use airpath_radio::cell::{Access, AlignmentConfig, CellConfig, LteDuplex};
use airpath_radio::lte::{self, tdd};
use airpath_radio::mac::Occasions;
use airpath_radio::mac::bsr::{BsrConfig, LogicalChannel, Piggyback, RegularTrigger};
use airpath_radio::mac::drx::{DrxConfig, ShortCycle, UplinkStart};
use airpath_radio::mac::rach::RachConfig;
use airpath_radio::mac::sr::SrConfig;
use airpath_radio::nr::SYMBOLS_PER_SLOT;
use airpath_radio::rlc::RlcConfig;
use airpath_radio::rrc::connection::{ConnectionConfig, InactiveConfig};
use airpath_radio::rrc::umts::{Fach, PchConfig, SetupState, UmtsConfig};
use airpath_radio::rrc::{RrcConfig, RrcState};
use airpath_radio::scheduler::grants::{EstimateConfig, PeriodicGrant, Requests};
use airpath_radio::umts;

use crate::get::Get;
use crate::read::Fields;
use crate::spec::{BsrPiggyback, BsrRegular, GrantRequests, InitialRrc, InitialUmts, UmtsSetup};

/// `[radio.sr]`.
pub(super) fn sr(fields: &Fields, cell: &CellConfig) -> SrConfig {
    let get = Get(fields);
    let period = fields.time("period_ms");
    SrConfig {
        occasions: period.map(|period| {
            let usual = || cell.request_offset(Duration::from_millis(4));
            Occasions::new(period, fields.time("offset_ms").unwrap_or_else(usual))
        }),
        prohibit: match (fields.count("prohibit_timer_periods"), period) {
            (Some(periods @ 1..), Some(period)) => Some(period * periods),
            _ => fields.time("prohibit_timer_ms"),
        },
        transmissions_max: get.narrow("trans_max"),
        preparation: get.time("preparation_ms"),
        miss_probability: get.fraction("miss_probability"),
    }
}

/// `[radio.bsr]`. The bearer is a single logical channel.
pub(super) fn bsr(get: &Get<'_>, plain: BsrConfig) -> BsrConfig {
    let delay = get.0.time("sr_delay_timer_ms");
    let channel = LogicalChannel {
        group: 0,
        priority: 1,
        delays_request: delay.is_some(),
        masks_request: false,
    };
    BsrConfig {
        format: plain.format,
        channels: vec![channel],
        periodic: get.0.time("periodic_timer_ms"),
        retransmission: get.time("retx_timer_ms"),
        request_delay: delay.unwrap_or(Duration::ZERO),
        piggyback: match get.chosen() {
            BsrPiggyback::Always => Piggyback::Always,
            BsrPiggyback::Padding => Piggyback::Padding,
        },
        regular: match get.chosen() {
            BsrRegular::NewData => RegularTrigger::NewData,
            BsrRegular::WaitingData => RegularTrigger::WaitingData,
        },
    }
}

/// How the base station of `[radio.grants]` interprets requests and reports.
pub(super) fn estimate(get: &Get<'_>) -> EstimateConfig {
    EstimateConfig {
        request_grant: get.narrow("request_grant_bytes"),
        forget_after: get.0.time("forget_after_ms"),
        assume_more: get.flag("assume_more"),
        least_prbs: get.narrow("least_prbs"),
        // The key's range ends at 28.
        request_mcs: get.0.count("request_mcs").map(|mcs| mcs as u8),
        header_room: get.flag("header_room"),
        requests: match get.chosen() {
            GrantRequests::Unexpected => Requests::Unexpected,
            GrantRequests::All => Requests::All,
        },
        late_reports: get.flag("late_reports"),
    }
}

/// The proactive or the configured grants of `[radio.grants]`.
pub(super) fn periodic_grant(get: &Get<'_>, kind: &str) -> Option<PeriodicGrant> {
    let key = |name: &str| format!("{kind}_{name}");
    let period = get.0.time(&key("period_ms"))?;
    Some(PeriodicGrant {
        occasions: Occasions::new(period, get.time(&key("offset_ms"))),
        bytes: get.narrow(&key("bytes")),
        keep: get.0.time(&key("keep_ms")),
    })
}

/// `[radio.rach]`.
pub(super) fn random_access(get: &Get<'_>) -> Option<RachConfig> {
    get.flag("enabled").then(|| RachConfig {
        occasions: Occasions::new(get.time("period_ms"), get.time("offset_ms")),
        preparation: get.time("preparation_ms"),
        preamble: get.time("preamble_ms"),
        response_window_after: get.time("response_window_after_ms"),
        response_window: get.time("response_window_ms"),
        response_delay: get.time("response_delay_ms"),
        msg3_delay: get.time("msg3_delay_ms"),
        contention_resolution: get.time("contention_resolution_ms"),
        resolution_delay: get.time("resolution_delay_ms"),
        backoff: get.time("backoff_ms"),
        preambles_max: get.narrow("preambles_max"),
        miss_probability: get.fraction("miss_probability"),
        contention_probability: get.fraction("contention_probability"),
    })
}

/// `[radio.time_alignment]`.
pub(super) fn alignment(get: &Get<'_>) -> Option<AlignmentConfig> {
    get.flag("enabled").then(|| AlignmentConfig {
        timer: get.0.time("timer_ms"),
        command_every: get.time("command_every_ms"),
    })
}

/// `[radio.drx]`; `processes` is the number of HARQ processes.
pub(super) fn drx(get: &Get<'_>, access: &Access, processes: u8) -> Option<DrxConfig> {
    if !get.flag("enabled") {
        return None;
    }
    let timers = match access {
        Access::Nr(carrier) => {
            let slot = carrier.numerology.slot();
            let symbols =
                |count: u64| Duration::from_nanos(slot.as_nanos() * count / SYMBOLS_IN_SLOT);
            Timers {
                rtt: ["harq_rtt_down_symbols", "harq_rtt_up_symbols"]
                    .map(|name| symbols(get.count(name))),
                retransmission: ["retransmission_down_slots", "retransmission_up_slots"]
                    .map(|name| slot * get.count(name)),
                pdcch: symbols(carrier.control_symbols.into()),
            }
        }
        // The tables of UMTS and EV-DO do not have this key.
        Access::Umts(_) | Access::Evdo => return None,
        Access::Lte(carrier) => Timers {
            rtt: lte_rtt(carrier.duplex),
            retransmission: ["retransmission_down_subframes", "retransmission_up_subframes"]
                .map(|name| lte::SUBFRAME * get.count(name)),
            pdcch: lte::SUBFRAME,
        },
    };
    let [harq_rtt_downlink, harq_rtt_uplink] = timers.rtt;
    let [retransmission_downlink, retransmission_uplink] = timers.retransmission;
    Some(DrxConfig {
        on_duration: get.time("on_duration_ms"),
        slot_offset: get.0.time("slot_offset_ms").unwrap_or(Duration::ZERO),
        inactivity: get.time("inactivity_ms"),
        long_cycle: get.time("long_cycle_ms"),
        start_offset: get.time("start_offset_ms"),
        short_cycle: get
            .0
            .time("short_cycle_ms")
            .map(|cycle| ShortCycle { cycle, timer: get.narrow("short_cycle_timer") }),
        harq_rtt_downlink,
        harq_rtt_uplink,
        retransmission_downlink,
        retransmission_uplink,
        pdcch: timers.pdcch,
        harq_processes: processes,
        uplink_start: match get.flag("uplink_waits_for_on_duration") {
            true => UplinkStart::InOnDuration,
            false => UplinkStart::AtOnce,
        },
    })
}

const SYMBOLS_IN_SLOT: u64 = SYMBOLS_PER_SLOT as u64;

/// Timers that LTE and NR give in different units; pairs are downlink and uplink.
struct Timers {
    rtt: [Duration; 2],
    retransmission: [Duration; 2],
    pdcch: Duration,
}

/// HARQ RTT Timer and UL HARQ RTT Timer. In TDD they depend on the subframe; here they are the
/// shortest, so that the UE listens too early rather than too late.
// TS 36.321 7.7: FDD 8 subframes; TDD k + 4, and k_PHICH. Counted from the end of the PUSCH it is
// one subframe less.
fn lte_rtt(duplex: LteDuplex) -> [Duration; 2] {
    let (down, up) = match duplex {
        LteDuplex::Fdd => (8, 3),
        LteDuplex::Tdd { configuration, .. } => tdd_rtt(configuration),
    };
    [lte::SUBFRAME * down, lte::SUBFRAME * up]
}

fn tdd_rtt(configuration: tdd::Configuration) -> (u64, u64) {
    let feedback = (0..10).filter_map(|subframe| configuration.feedback_delay(subframe)).min();
    let phich = (0..10).filter_map(|subframe| configuration.phich_delay(subframe)).min();
    (u64::from(feedback.unwrap_or(4)) + 4, u64::from(phich.unwrap_or(4)).saturating_sub(1))
}

/// `[radio.rrc]`.
pub(super) fn rrc(get: &Get<'_>) -> Option<RrcConfig> {
    if !get.flag("enabled") {
        return None;
    }
    let offset = get.time("paging_offset_ms");
    Some(RrcConfig::Connection(ConnectionConfig {
        initial: match get.chosen() {
            InitialRrc::Connected => RrcState::Connected,
            InitialRrc::Idle => RrcState::Idle,
        },
        setup: get.time("setup_ms"),
        inactivity: get.0.time("inactivity_ms"),
        inactive: (get.0.flag("inactive") == Some(true)).then(|| InactiveConfig {
            resume: get.time("resume_ms"),
            idle_after: get.0.time("inactive_idle_after_ms"),
            paging: Occasions::new(get.time("inactive_paging_cycle_ms"), offset),
        }),
        paging: Occasions::new(get.time("paging_cycle_ms"), offset),
        paging_delay: get.time("paging_delay_ms"),
    }))
}

/// `[radio.rrc]` of UMTS. A block of a common channel holds one PDU of the downlink's size.
pub(super) fn umts_states(get: &Get<'_>, rlc: &RlcConfig) -> Option<RrcConfig> {
    if !get.flag("enabled") {
        return None;
    }
    let bytes = rlc.least_block().max(LEAST_COMMON_BLOCK);
    let bits = f64::from(8 * bytes);
    // The ranges of both keys are far from overflow.
    let frames = (bits / get.real("fach_kbps") / 10.0).round().max(1.0) as u64;
    let (block, rach) = (umts::FRAME * frames, get.time("rach_ms"));
    Some(RrcConfig::Umts(UmtsConfig {
        initial: match get.chosen() {
            InitialUmts::CellPch => RrcState::CellPch,
            InitialUmts::CellFach => RrcState::CellFach,
            InitialUmts::CellDch => RrcState::CellDch,
            InitialUmts::Idle => RrcState::Idle,
        },
        setup: get.time("setup_ms"),
        setup_state: match get.chosen() {
            UmtsSetup::CellFach => SetupState::Fach,
            UmtsSetup::CellDch => SetupState::Dch,
        },
        pch_to_fach: get.time("pch_to_fach_ms"),
        fach_to_dch: get.time("fach_to_dch_ms"),
        uplink_threshold: get.narrow("uplink_threshold_bytes"),
        downlink_threshold: get.narrow("downlink_threshold_bytes"),
        dch_inactivity: get.time("dch_inactivity_ms"),
        fach_inactivity: get.time("fach_inactivity_ms"),
        pch: match get.flag("pch") {
            true => PchConfig::IdleAfter(get.0.time("pch_idle_after_ms")),
            false => PchConfig::Unused,
        },
        paging: Occasions::new(get.time("paging_cycle_ms"), get.time("paging_offset_ms")),
        paging_delay: get.time("paging_delay_ms"),
        fach: Fach {
            downlink: Occasions::new(block, Duration::ZERO),
            downlink_time: block,
            uplink: Occasions::new(rach, Duration::ZERO),
            uplink_time: rach,
            bytes,
        },
    }))
}

/// A block of the usual S-CCPCH: 360 bits (TS 34.108 6.10.2.4.3).
const LEAST_COMMON_BLOCK: u32 = 45;
