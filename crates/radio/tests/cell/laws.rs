//! Slicing, conservation, determinism, and freedom from stalls, for random cells and traffic.

use airpath_base::{Direction, Drop, Duration, FlowId, Instant};
use airpath_radio::adaptation::{McsMode, OuterLoopConfig, StepsConfig};
use airpath_radio::bearer::Forwarding;
use airpath_radio::buffer::{CoDelConfig, Discipline, Isolation};
use airpath_radio::cell::*;
use airpath_radio::channel::{ChannelConfig, Outage, Quality};
use airpath_radio::harq::Decoding;
use airpath_radio::lte::tdd;
use airpath_radio::mac::Occasions;
use airpath_radio::mac::bsr::{Piggyback, RegularTrigger};
use airpath_radio::mac::drx::{DrxConfig, ShortCycle, UplinkStart};
use airpath_radio::mac::rach::RachConfig;
use airpath_radio::ran::*;
use airpath_radio::rlc::{RlcConfig, Subheaders};
use airpath_radio::rrc::connection::{ConnectionConfig, InactiveConfig};
use airpath_radio::rrc::umts::{Fach, PchConfig, SetupState, UmtsConfig};
use airpath_radio::rrc::{RrcConfig, RrcState};
use airpath_radio::scheduler::grants::{PeriodicGrant, Requests};
use airpath_radio::scheduler::{Policy, RateCap};
use airpath_radio::umts::{DchRate, EdchCategory, EdchTti, HsdpaCategory};
use proptest::prelude::*;

use crate::common::*;

/// A packet: microseconds after the previous one, UE, direction, size.
pub(crate) type Arrival = (u64, u32, Direction, u32);

fn carrier() -> impl Strategy<Value = CellConfig> {
    prop_oneof![
        Just(CellConfig::nr(NrCarrier::n78_100_mhz())),
        Just(CellConfig::nr(NrCarrier::fdd_20_mhz())),
        Just(CellConfig::lte(LteCarrier::fdd_20_mhz())),
        umts(),
        Just(CellConfig::evdo()),
        (0u8..7, 0u8..=9, 6u32..=100).prop_map(|(number, special, prbs)| {
            let configuration = tdd::Configuration::new(number).unwrap();
            CellConfig::lte(LteCarrier::new(LteDuplex::Tdd { configuration, special }, prbs))
        }),
        (0usize..4, 0u32..5, 1u32..7, 11u32..60, prop::bool::ANY, prop::bool::ANY).prop_map(
            |(pattern, k1, k2, prbs, exact_k2, in_special)| {
                let pattern =
                    ["DDDSU 10:2:2", "DSUUU 6:4:4", "DDSUU 8:2:4 + DU", "DDDDDDDSUU 6:4:4"]
                        [pattern];
                let mut carrier = NrCarrier::n78_100_mhz();
                carrier.duplex = NrDuplex::Tdd(pattern.parse().unwrap());
                carrier.downlink.prbs = prbs;
                carrier.uplink.prbs = prbs;
                carrier.offsets.k1 = k1;
                carrier.offsets.k2 = k2;
                let mut cell = CellConfig::nr(NrCarrier {
                    granting: Granting { exact_k2, in_special },
                    ..carrier.clone()
                });
                if cell.check().is_err() {
                    // No PDCCH is so many slots before an uplink slot.
                    cell = CellConfig::nr(carrier);
                }
                cell
            }
        ),
    ]
}

fn umts() -> impl Strategy<Value = CellConfig> {
    let rate =
        || prop_oneof![Just(DchRate::Kbps64), Just(DchRate::Kbps128), Just(DchRate::Kbps384)];
    let category = prop_oneof![Just(5u8), Just(8), Just(10), Just(12), Just(14)];
    let downlink = prop_oneof![
        3 => (category, 5u32..=15).prop_map(|(category, codes)| UmtsDownlink::HsDsch {
            category: HsdpaCategory::new(category).unwrap(),
            codes,
        }),
        1 => rate().prop_map(UmtsDownlink::Dch),
    ];
    let uplink = prop_oneof![
        2 => Just(EdchTti::Ms2),
        2 => Just(EdchTti::Ms10),
    ];
    let uplink = prop_oneof![
        3 => uplink.prop_map(|tti| UmtsUplink::EDch { category: EdchCategory::new(6).unwrap(), tti }),
        1 => rate().prop_map(UmtsUplink::Dch),
    ];
    (downlink, uplink)
        .prop_map(|(downlink, uplink)| CellConfig::umts(UmtsCarrier { downlink, uplink }))
}

fn cell() -> impl Strategy<Value = CellConfig> {
    let policy = prop_oneof![
        Just(Policy::RoundRobin),
        Just(Policy::MaxRate),
        Just(Policy::ProportionalFair { time_constant: ms(100) }),
    ];
    (carrier(), policy, 0u64..2_000, 0u64..2_000, 0u64..4_000, prop::option::of(1u32..3)).prop_map(
        |(mut cell, policy, down, up, grant, ues_per_slot)| {
            cell.downlink_scheduler.policy = policy;
            cell.uplink_scheduler.policy = policy;
            cell.uplink_scheduler.ues_per_slot = ues_per_slot;
            cell.base_station =
                BaseStationConfig { downlink: us(down), uplink: us(up), grant: us(grant) };
            cell
        },
    )
}

fn drx() -> impl Strategy<Value = DrxConfig> {
    let start = prop_oneof![
        Just(UplinkStart::AtOnce),
        Just(UplinkStart::InActiveTime),
        Just(UplinkStart::InOnDuration)
    ];
    (10u64..20, 1u64..50, prop::bool::ANY, start).prop_map(
        |(on, inactivity, short, uplink_start)| DrxConfig {
            on_duration: ms(on),
            slot_offset: Duration::ZERO,
            inactivity: ms(inactivity),
            long_cycle: ms(160),
            start_offset: ms(on),
            short_cycle: short.then_some(ShortCycle { cycle: ms(40), timer: 2 }),
            harq_rtt_downlink: ms(4),
            harq_rtt_uplink: ms(4),
            retransmission_downlink: ms(16),
            retransmission_uplink: ms(16),
            pdcch: us(71),
            harq_processes: 16,
            uplink_start,
        },
    )
}

fn rrc() -> impl Strategy<Value = ConnectionConfig> {
    (prop::bool::ANY, prop::bool::ANY, 60u64..300).prop_map(|(idle, inactive, inactivity)| {
        ConnectionConfig {
            initial: if idle { RrcState::Idle } else { RrcState::Connected },
            setup: ms(60),
            inactivity: Some(ms(inactivity)),
            inactive: inactive.then_some(InactiveConfig {
                resume: ms(20),
                idle_after: Some(ms(300)),
                paging: Occasions::new(ms(320), ms(10)),
            }),
            paging: Occasions::new(ms(640), ms(10)),
            paging_delay: ms(10),
        }
    })
}

/// UMTS states with the timers of an LTE configuration: half of the time idle at the start, half in
/// CELL_DCH.
fn umts_states(like: RrcConfig) -> RrcConfig {
    let RrcConfig::Connection(like) = like else { return like };
    let inactivity = like.inactivity.unwrap_or(ms(100));
    RrcConfig::Umts(UmtsConfig {
        initial: if like.initial == RrcState::Idle { RrcState::Idle } else { RrcState::CellDch },
        setup: like.setup,
        setup_state: if like.inactive.is_some() { SetupState::Fach } else { SetupState::Dch },
        pch_to_fach: ms(40),
        fach_to_dch: ms(50),
        uplink_threshold: 200,
        downlink_threshold: 400,
        dch_inactivity: inactivity,
        fach_inactivity: ms(500),
        pch: like.inactive.map_or(PchConfig::Unused, |_| PchConfig::IdleAfter(Some(ms(900)))),
        paging: like.paging,
        paging_delay: like.paging_delay,
        fach: Fach {
            downlink: Occasions::new(ms(10), ms(0)),
            downlink_time: ms(10),
            uplink: Occasions::new(ms(40), ms(0)),
            uplink_time: ms(30),
            bytes: 45,
        },
    })
}

fn rach() -> RachConfig {
    RachConfig {
        occasions: Occasions::new(ms(10), ms(1)),
        preparation: ms(1),
        preamble: ms(1),
        response_window_after: ms(3),
        response_window: ms(10),
        response_delay: ms(2),
        msg3_delay: ms(7),
        contention_resolution: ms(48),
        resolution_delay: ms(6),
        backoff: ms(20),
        preambles_max: 4,
        miss_probability: 0.2,
        contention_probability: 0.1,
    }
}

fn cell_with(access: &Access) -> CellConfig {
    match access {
        Access::Nr(carrier) => CellConfig::nr(carrier.clone()),
        Access::Lte(carrier) => CellConfig::lte(*carrier),
        Access::Umts(carrier) => CellConfig::umts(*carrier),
        Access::Evdo => CellConfig::evdo(),
    }
}

fn ue(access: Access) -> impl Strategy<Value = UeConfig> {
    let losses = (0.0..0.6, 0.0..0.6, 1u8..5, 0.0..0.1);
    let bearer =
        (prop::bool::ANY, prop::option::of(3_000u64..60_000), 0..3, prop::option::of(20u64..300));
    let asking = (prop::option::of(1u64..80), 1u32..8, 0.0..0.3, prop::bool::ANY, 16u32..400);
    let grants =
        (prop::option::of((1u64..20, prop::option::of(1u64..100))), prop::option::of(1u64..20));
    let states = (prop::option::of(drx()), prop::option::of(rrc()), prop::option::of(40u64..500));
    let outage = prop::option::of((0u64..3_000, 1u64..500));
    let rest = (prop::option::of(1u64..20), -3.0..30.0, 0u64..3_000, 0u64..3_000, outage);
    let habits = (prop::array::uniform5(prop::bool::ANY), 1u32..8, prop::option::of(0u8..20));
    (losses, bearer, asking, grants, states, rest, habits).prop_map(
        move |(losses, bearer, asking, grants, states, rest, habits)| {
            let mut ue = UeConfig::plain(&access);
            let ([waiting, room, all, late, long], least_prbs, request_mcs) = habits;
            ue.estimate.least_prbs = least_prbs;
            ue.estimate.request_mcs = request_mcs;
            ue.estimate.header_room = room;
            ue.estimate.requests = if all { Requests::All } else { Requests::Unexpected };
            ue.estimate.late_reports = late;
            if waiting {
                ue.bsr.regular = RegularTrigger::WaitingData;
            }
            if long {
                ue.uplink.subheaders = Subheaders::Long;
            }
            if bearer.0 {
                um(&mut ue);
            }
            bler(&mut ue, losses.0, losses.1);
            for link in [&mut ue.downlink, &mut ue.uplink] {
                link.harq.max_transmissions = losses.2;
                if let RlcConfig::Umts(am) = &mut link.bearer.rlc {
                    // Less than the inactivity timer, as in the other technologies: a poll that
                    // needs a page each time takes longer than this test waits.
                    am.arq.t_poll_retransmit = ms(45);
                    am.arq.t_status_prohibit = ms(10);
                }
                link.harq.nack_to_ack = losses.3;
                link.channel = ChannelConfig::Constant(Quality::Sinr(rest.1));
                if let Some((from, length)) = rest.4 {
                    let from = Instant::ZERO + ms(from);
                    link.channel = ChannelConfig::Interrupted {
                        source: Box::new(link.channel.clone()),
                        outages: [Outage { from, until: from + ms(length) }].into(),
                    };
                }
                link.mcs = match request_mcs {
                    Some(start) if late && !matches!(access, Access::Evdo) => {
                        McsMode::Steps(StepsConfig { start, ..StepsConfig::default() })
                    }
                    _ => McsMode::Adaptive(OuterLoopConfig::default()),
                };
                link.cap = rest.0.map(|mbps| RateCap {
                    rate: airpath_base::Rate::from_bps(mbps * 1_000_000).unwrap(),
                    bucket_bytes: 3_000,
                });
                link.bearer.buffer.bytes = bearer.1;
                let codel = CoDelConfig { target: ms(5), interval: ms(100) };
                link.bearer.buffer.discipline = match bearer.2 {
                    0 => Discipline::DropTail,
                    1 => Discipline::CoDel(codel),
                    _ => {
                        Discipline::FqCoDel { codel, quantum: 1500, isolation: Isolation::Perfect }
                    }
                };
                link.bearer.pdcp.discard = bearer.3.map(ms);
            }
            let offset = cell_with(&access).request_offset(ms(1));
            ue.sr.occasions = asking.0.map(|period| Occasions::new(ms(period), offset));
            ue.sr.transmissions_max = asking.1;
            ue.sr.miss_probability = asking.2;
            ue.bsr.piggyback = if asking.3 { Piggyback::Always } else { Piggyback::Padding };
            ue.bsr.channels[0].masks_request = asking.3;
            ue.estimate.request_grant = asking.4;
            let grant = |period, keep: Option<u64>| PeriodicGrant {
                occasions: Occasions::new(ms(period), ms(0)),
                bytes: 120,
                keep: Some(ms(keep.unwrap_or(50))),
            };
            let standing = access.has_standing_grants();
            if !standing {
                ue.proactive = grants.0.map(|(period, keep)| grant(period, keep));
                ue.configured = grants.1.map(|period| grant(period, None));
                ue.drx.clone_from(&states.0);
            }
            ue.rrc = states.1.map(RrcConfig::Connection);
            if let (Some(states), Access::Umts(_)) = (ue.rrc, &access) {
                ue.rrc = Some(umts_states(states));
            }
            ue.alignment = states.2.filter(|_| !standing).map(|timer| AlignmentConfig {
                timer: Some(ms(timer)),
                command_every: ms(timer / 4),
            });
            if !standing && (ue.sr.occasions.is_none() || ue.alignment.is_some() || asking.3) {
                ue.random_access = Some(rach());
            }
            ue.processing = UeProcessing { downlink: us(rest.2), uplink: us(rest.3) };
            ue
        },
    )
}

/// A network of one cell, with a number of UEs in this range.
pub(crate) fn world(ues: core::ops::Range<usize>) -> impl Strategy<Value = RanConfig> {
    cell().prop_flat_map(move |cell| {
        let ues = prop::collection::vec(ue(cell.access.clone()), ues.clone());
        ues.prop_map(move |ues| RanConfig::alone(&cell, &ues))
    })
}

/// Two or three cells of any technology, and UEs that are commanded to move, or move by themselves.
pub(crate) fn wide_world() -> impl Strategy<Value = RanConfig> {
    let cells = prop::collection::vec(cell(), 2..4);
    let planned = prop::collection::vec(
        (0u64..600, prop_oneof![Just(0), 20u64..400, 5_000u64..9_000], 0u32..3, 0u32..3),
        0..6,
    );
    let numbers = (0u64..60, 0u64..60, prop::bool::ANY, 0u64..20, 0u64..60);
    let measured = prop::option::of((10u64..100, prop::bool::ANY, -15.0..10.0));
    (cells, planned, numbers, measured).prop_flat_map(|(cells, planned, numbers, measured)| {
        let mobile = || {
            let in_cell: Vec<_> = cells.iter().map(|cell| ue(cell.access.clone())).collect();
            let accesses: Vec<_> = cells.iter().map(|cell| cell.access.clone()).collect();
            in_cell.prop_map(move |mut in_cell| {
                let am = |ue: &UeConfig| ue.downlink.bearer.rlc.is_acknowledged();
                // A bearer keeps its RLC mode. UMTS has AM only.
                let only_am = |access: &Access| matches!(access, Access::Umts(_) | Access::Evdo);
                if accesses.iter().any(only_am) {
                    for (ue, access) in in_cell.iter_mut().zip(&accesses) {
                        let plain = UeConfig::plain(access);
                        ue.downlink.bearer.rlc = plain.downlink.bearer.rlc;
                        ue.uplink.bearer.rlc = plain.uplink.bearer.rlc;
                    }
                } else if in_cell.iter().any(|ue| !am(ue)) {
                    in_cell.iter_mut().for_each(um);
                }
                MobileConfig { in_cell }
            })
        };
        let count = cells.len() as u32;
        let cells = cells.clone();
        (mobile(), mobile(), 1usize..3).prop_map(move |(first, second, ues)| {
            let ues: Vec<_> = [first, second].into_iter().take(ues).collect();
            RanConfig {
                cells: cells.clone(),
                handover: HandoverConfig {
                    preparation: ms(numbers.0),
                    interruption: ms(numbers.1),
                    forwarding: if numbers.2 { Forwarding::Buffer } else { Forwarding::Nothing },
                    forwarding_delay: ms(numbers.3),
                    path_switch: ms(numbers.4),
                },
                planned: planned
                    .iter()
                    .map(|&(at, every, ue, to)| PlannedHandover {
                        at: ms(at),
                        every: (every > 0).then_some(ms(every)),
                        ue: (ue < ues.len() as u32).then_some(UeIndex(ue)),
                        to: CellIndex(to % count),
                    })
                    .collect(),
                measurements: measured.map(|(period, a3, q_out_db)| MeasurementConfig {
                    period: ms(period),
                    a3: a3.then_some(A3Config {
                        offset_db: 1.0,
                        hysteresis_db: 0.5,
                        time_to_trigger: ms(100),
                        filter_coefficient: 4,
                    }),
                    failure: Some(FailureConfig {
                        q_out_db,
                        q_in_db: q_out_db + 2.0,
                        n310: 1,
                        n311: 1,
                        t310: ms(100),
                        t304: ms(80),
                        reestablishment: ms(120),
                    }),
                }),
                ues,
                split: None,
            }
        })
    })
}

/// Two or three cells, and split bearers over the first two.
fn split_world() -> impl Strategy<Value = RanConfig> {
    let policy = prop_oneof![
        Just(SplitPolicy::ShortestWait),
        (0.0..=1.0).prop_map(|secondary| SplitPolicy::Fixed { secondary }),
    ];
    let primary = prop_oneof![Just(Leg::Master), Just(Leg::Secondary)];
    let times = (prop_oneof![Just(0u64), 1u64..300], prop_oneof![Just(0u64), 1u64..30_000]);
    let rest = (prop::bool::ANY, prop::option::of(0u64..20_000), prop::bool::ANY);
    (wide_world(), policy, primary, times, rest).prop_filter_map(
        "both legs are LTE or NR",
        |(mut config, policy, primary, (t_reordering, delay), (all, threshold, flow_control))| {
            config.planned.clear();
            config.measurements = None;
            config.split = Some(SplitConfig {
                ue: (!all).then_some(UeIndex(0)),
                secondary: CellIndex(1),
                primary,
                policy,
                threshold,
                t_reordering: ms(t_reordering),
                delay: us(delay),
                flow_control,
            });
            config.check().is_ok().then_some(config)
        },
    )
}

/// A secondary carrier: its cell, BLER, SINR in dB, transmissions of a block, and whether it has
/// uplink.
type DrawnCarrier = (CellConfig, f64, f64, u8, bool);

/// One cell with secondary carriers, of which the UEs after the first use fewer.
pub(crate) fn aggregated() -> impl Strategy<Value = RanConfig> {
    let carrier = (cell(), 0.0..0.6, -3.0..30.0, 1u8..5, prop::bool::ANY);
    (world(1..4), prop::collection::vec(carrier, 1..4), 0usize..4).prop_filter_map(
        "the technology has carrier aggregation",
        |(mut config, carriers, used)| {
            let standing = config.cells[0].access.has_standing_grants();
            (!standing).then(|| {
                aggregate(&mut config, carriers, used);
                config
            })
        },
    )
}

fn aggregate(config: &mut RanConfig, carriers: Vec<DrawnCarrier>, used: usize) {
    let alone = config.cells[0].clone();
    for (cell, bler, sinr_db, most, sends) in carriers {
        config.cells[0].secondary.push(cell);
        if config.cells[0].check().is_err() {
            config.cells[0].secondary.pop();
            config.cells[0].secondary.push(alone.clone());
        }
        let access = &config.cells[0].secondary.last().unwrap().access;
        let mut own = UeConfig::plain_carrier(access);
        own.sends = sends;
        for radio in [&mut own.downlink, &mut own.uplink] {
            radio.channel = ChannelConfig::Constant(Quality::Sinr(sinr_db));
            radio.harq.max_transmissions = most;
            radio.harq.decoding = Decoding::Fixed { initial: bler, retransmission: bler };
        }
        for (index, ue) in config.ues.iter_mut().enumerate() {
            if index == 0 || ue.in_cell[0].secondary.len() < used {
                ue.in_cell[0].secondary.push(own.clone());
            }
        }
    }
    for ue in &config.ues {
        assert_eq!(ue.in_cell[0].check(&config.cells[0]), Ok(()));
    }
}

pub(crate) fn traffic() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![4 => 0u64..300, 2 => 0u64..5_000, 1 => 0u64..400_000];
    let direction = prop_oneof![Just(DOWN), Just(UP)];
    let size = prop_oneof![40u32..100, 1_000u32..1_501];
    prop::collection::vec((gap, 0u32..3, direction, size), 1..120)
}

/// When the driver polls, apart from when it enqueues.
#[derive(Clone, Copy, Debug)]
enum Asking {
    AtEachEvent,
    AtTheEnd,
    Every(Duration),
}

/// Whether UEs come to rest: none moves for ever, and none is out of sync wherever it goes.
fn settles(config: &RanConfig) -> bool {
    let failure = config.measurements.and_then(|measurements| measurements.failure);
    failure.is_none_or(|failure| failure.q_out_db < -3.0)
        && config.planned.iter().all(|planned| planned.every.is_none_or(|every| every > ms(1_000)))
}

/// Everything that left the cell, and everything that was dropped.
type Outcome = (Vec<CellDeparture>, Vec<Drop>);

fn drive(config: &RanConfig, traffic: &[Arrival], asking: Asking, observed: bool) -> Outcome {
    let mut cell = Ran::new(config, 7);
    if observed {
        cell.keep_log();
    }
    let mut outcome = (Vec::new(), Vec::new());
    let (mut now, mut entered) = (Instant::ZERO, 0u64);
    let mut steps = 0u64;
    let mut ask = |cell: &mut Ran, at: Instant, entered: u64, outcome: &mut Outcome| {
        while let Some(departure) = cell.poll(at) {
            assert!(departure.at <= at);
            outcome.0.push(departure);
        }
        while let Some(drop) = cell.poll_drop() {
            outcome.1.push(drop);
        }
        let gone = outcome.0.iter().map(|departure| departure.packet);
        let gone = gone.chain(outcome.1.iter().map(|drop| drop.packet));
        if steps.is_multiple_of(16) {
            let bytes: u64 = gone.map(|packet| u64::from(packet.size)).sum();
            assert_eq!(cell.load().bytes + bytes, entered, "conservation at {at:?}");
        }
        assert_eq!(cell.stalled(), None, "at {at:?}");
        steps += 1;
    };
    for (number, &(gap, ue, direction, size)) in (0..).zip(traffic) {
        let next = now + us(gap);
        match asking {
            Asking::AtEachEvent => {
                while let Some(at) = cell.next_event().filter(|&at| at <= next) {
                    ask(&mut cell, at, entered, &mut outcome);
                }
            }
            Asking::AtTheEnd => {}
            Asking::Every(step) => {
                let mut at = now + step;
                while at <= next {
                    ask(&mut cell, at, entered, &mut outcome);
                    at += step;
                }
            }
        }
        now = next;
        let ue = UeIndex(ue % config.ues.len() as u32);
        let mut packet = packet(number, size);
        packet.flow = FlowId(number as u32 % 3);
        cell.enqueue(now, direction, ue, &packet);
        entered += u64::from(size);
    }
    let end = now + Duration::from_secs(if settles(config) { 120 } else { 5 });
    match asking {
        Asking::AtTheEnd => {}
        Asking::AtEachEvent | Asking::Every(_) => {
            while let Some(at) = cell.next_event().filter(|&at| at <= end) {
                ask(&mut cell, at, entered, &mut outcome);
                if cell.load().packets == 0 {
                    break;
                }
            }
        }
    }
    ask(&mut cell, end, entered, &mut outcome);
    assert!(!settles(config) || cell.load().packets == 0, "left after two minutes");
    outcome
}

fn nothing_depends_on_when_it_is_asked(
    config: &RanConfig,
    traffic: &[Arrival],
    step: u64,
) -> Outcome {
    let often = drive(config, traffic, Asking::AtEachEvent, false);
    let once = drive(config, traffic, Asking::AtTheEnd, false);
    let observed = drive(config, traffic, Asking::Every(us(step)), true);
    assert_eq!(often.0, once.0);
    assert_eq!(often.0, observed.0);
    let sorted = |drops: &[Drop]| {
        let mut drops: Vec<_> = drops.iter().map(|drop| format!("{drop:?}")).collect();
        drops.sort();
        drops
    };
    assert_eq!(sorted(&often.1), sorted(&once.1));
    assert_eq!(sorted(&often.1), sorted(&observed.1));
    assert!(often.0.is_sorted_by_key(|departure| departure.at));
    often
}

proptest! {
    #![proptest_config(match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(256),
    })]

    /// Also asserts conservation and progress on the way, and that everything has left after two
    /// minutes.
    #[test]
    fn a_cell_depends_on_nobody_asking(
        config in world(1..4), traffic in traffic(), step in 50u64..20_000,
    ) {
        nothing_depends_on_when_it_is_asked(&config, &traffic, step);
    }

    /// As for one cell, with several carriers.
    #[test]
    fn carriers_depend_on_nobody_asking(
        config in aggregated(), traffic in traffic(), step in 50u64..20_000,
    ) {
        nothing_depends_on_when_it_is_asked(&config, &traffic, step);
    }

    /// Carriers that no UE uses change nothing.
    #[test]
    fn unused_carriers_change_nothing(mut config in aggregated(), traffic in traffic()) {
        config.ues.iter_mut().for_each(|ue| ue.in_cell[0].secondary.clear());
        let unused = drive(&config, &traffic, Asking::AtEachEvent, false);
        config.cells[0].secondary.clear();
        let without = drive(&config, &traffic, Asking::AtEachEvent, false);
        prop_assert_eq!(unused, without);
    }

    /// As for one cell, with bearers over two of them. Packets are delivered in order.
    #[test]
    fn split_bearers_depend_on_nobody_asking(
        config in split_world(), traffic in traffic(), step in 50u64..20_000,
    ) {
        let (departures, _) = nothing_depends_on_when_it_is_asked(&config, &traffic, step);
        for direction in [DOWN, UP] {
            let mine = |departure: &&CellDeparture| {
                (departure.ue, departure.direction) == (UeIndex(0), direction)
            };
            prop_assert!(departures.iter().filter(mine).is_sorted_by_key(|it| opaque(&it.packet)));
        }
    }

    /// As for one cell, while UEs move.
    #[test]
    fn a_network_depends_on_nobody_asking(
        config in wide_world(), traffic in traffic(), step in 50u64..20_000,
    ) {
        nothing_depends_on_when_it_is_asked(&config, &traffic, step);
    }
}
