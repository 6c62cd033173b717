//! The radio link: buffers, DRX, uplink access, HARQ and RLC, RRC, handovers, outages.

use airpath_base::{Direction, Duration, Instant};
use airpath_radio::bearer::{Forwarding, OneWayConfig};
use airpath_radio::buffer::{BufferConfig, Discipline};
use airpath_radio::cell::Access;
use airpath_radio::cell::UeIndex;
use airpath_radio::channel::ChannelConfig;
use airpath_radio::pdcp::Release;
use airpath_radio::rlc::{LteMode, RlcConfig};
use airpath_record::LinkSummary;
use airpath_scenario::{Edit, KeyPath, Literal, RadioConfig};

use super::path::LONGER;
use crate::candidate::{Candidate, DROP_TAIL};
use crate::cause::Cause;
use crate::evidence::Evidence;
use crate::observed::Observed;
use crate::subject::Subject;
use crate::text::{Bytes, Count, Ms, Percent, Seconds, listed};

pub(super) fn add(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let Some(radio) = &observed.scenario.radio else { return };
    buffers(observed, all);
    let awake = observed.run.radio.iter().map(|side| side.awake).fold(1.0, f64::min);
    if awake < 1.0 {
        let evidence = vec![Evidence::Drx { awake: Percent(awake) }];
        let removals = everywhere(observed, &[Edit::new("drx.enabled", false)]);
        push(all, Cause::Drx, "drx", evidence, removals);
    }
    let requests: u64 = observed.run.radio.iter().map(|side| side.scheduling_requests).sum();
    if requests > 0 {
        let (sent, usual_ms) = (Count(requests as f64), USUAL_SR_MS);
        let evidence = vec![Evidence::Requests { sent, usual_ms }];
        push(all, Cause::UplinkAccess, "grants", evidence, usual_requests(observed));
        unreported(observed, radio, all);
    }
    rate_caps(observed, all);
    blocks(observed, all);
    gaps(observed, radio, all);
    legs(observed, radio, all);
    let removals = everywhere(observed, &[Edit::new("rrc.enabled", false)]);
    push(all, Cause::RrcPromotion, "rrc", vec![Evidence::Idle {}], removals);
    if radio.cells.len() > 1 {
        handovers(observed, radio, all);
    }
    outages(observed, radio, all);
    let lost = observed.dropped_anywhere("radio_link");
    if radio.ran.measurements.as_ref().is_some_and(|measured| measured.failure.is_some()) {
        let evidence = match lost {
            0 => Evidence::LinkFailures {},
            packets => Evidence::LostToLinkFailures { packets },
        };
        let removals = vec![vec![Edit::new("radio.mobility.link_failure", false)]];
        push(all, Cause::RadioLinkFailure, "mobility", vec![evidence], removals);
    }
}

/// Adds a candidate about a table of the radio.
fn push(
    all: &mut Vec<Candidate>,
    cause: Cause,
    table: &'static str,
    evidence: Vec<Evidence>,
    removals: Vec<Vec<Edit>>,
) {
    all.push(Candidate::new(cause, Subject::Radio(table), evidence, removals));
}

/// Usual settings of scheduling requests: their remaining cost belongs to the radio.
fn usual_requests(observed: &Observed<'_>) -> Vec<Vec<Edit>> {
    let usual = [
        Edit::new("sr.period_ms", USUAL_SR_MS),
        Edit::new("sr.miss_probability", 0),
        Edit::new("sr.preparation_ms", 0),
        Edit::new("bsr.sr_delay_timer_ms", "none"),
        Edit::new("grants.request_grant_bytes", USUAL_GRANT_BYTES),
    ];
    // NR and LTE have different names for the same timer.
    let prohibit =
        [Edit::new("sr.prohibit_timer_ms", "none"), Edit::new("sr.prohibit_timer_periods", 0)];
    let with = |timer| everywhere(observed, &[&usual[..], &[timer]].concat());
    prohibit.into_iter().flat_map(with).collect()
}

/// Data that arrives after the report of a non-empty buffer triggers no report (TS 38.321 5.4.5).
/// If the base station relies on reports alone, the UE is then silent until retxBSR-Timer expires.
fn unreported(observed: &Observed<'_>, radio: &RadioConfig, all: &mut Vec<Candidate>) {
    let ues = || radio.ran.ues.iter().flat_map(|ue| &ue.in_cell);
    let trusting = ues().filter(|ue| !ue.estimate.assume_more);
    let Some(longest) = trusting.map(|ue| ue.bsr.retransmission).max() else { return };
    let evidence = vec![Evidence::Unreported { timer: Ms(longest.as_millis_f64()) }];
    let removals = everywhere(observed, &[Edit::new("grants.assume_more", true)]);
    push(all, Cause::UplinkAccess, "bsr", evidence, removals);
}

/// Handovers that interrupt nothing, lose nothing and happen in time.
fn handovers(observed: &Observed<'_>, radio: &RadioConfig, all: &mut Vec<Candidate>) {
    let mobility = KeyPath::new("radio.mobility");
    let seamless = [
        mobility.set("interruption_ms", 0),
        mobility.set("forwarding", "all"),
        mobility.set("forwarding_delay_ms", 0),
        mobility.set("path_switch_ms", 0),
    ];
    // Event A3 waits until the other cell has been better for a while.
    let in_time = [
        mobility.set("preparation_ms", 0),
        mobility.set("a3_offset_db", 0),
        mobility.set("a3_hysteresis_db", 0),
        mobility.set("time_to_trigger_ms", 0),
        mobility.set("filter_coefficient", 0),
    ];
    let evidence = vec![Evidence::Moved {
        cells: radio.cells.len(),
        interruption: Ms(radio.ran.handover.interruption.as_millis_f64()),
        lost: observed.dropped_anywhere("handover"),
    }];
    let removals = match radio.ran.planned.is_empty() {
        true => vec![[&seamless[..], &in_time].concat(), seamless.into()],
        false => vec![seamless.into()],
    };
    push(all, Cause::Handover, "mobility", evidence, removals);
}

/// Cells that were out of service during the run. An outage is part of the channels of each UE.
fn outages(observed: &Observed<'_>, radio: &RadioConfig, all: &mut Vec<Candidate>) {
    let Some(ue) = radio.ran.ues.first() else { return };
    let end = Instant::ZERO + observed.scenario.run.duration;
    let mut evidence = Vec::new();
    for (cell, there) in radio.cells.iter().zip(&ue.in_cell) {
        let ChannelConfig::Interrupted { outages, .. } = &there.downlink.channel else { continue };
        let within = outages.iter().filter(|outage| outage.from < end);
        let second = |time: Instant| Seconds(time.as_secs_f64());
        let times: Vec<String> = within
            .map(|outage| format!("from {} to {}", second(outage.from), second(outage.until)))
            .collect();
        if !times.is_empty() {
            let (cell, times) = (cell.clone(), listed(&times));
            evidence.push(Evidence::OutOfService { cell, times });
        }
    }
    if evidence.is_empty() {
        return;
    }
    let list = KeyPath::new("radio.outage");
    let removal = (0..observed.parsed.document.elements(&list))
        .map(|outage| list.at(outage).set("enabled", false))
        .collect();
    push(all, Cause::CellOutage, "outage", evidence, vec![removal]);
}

/// The aggregate maximum bit rates of UEs, which the scheduler enforces.
fn rate_caps(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let free = |keys: &[&str]| {
        let edits: Vec<Edit> = keys.iter().map(|key| Edit::new(key, "unlimited")).collect();
        everywhere(observed, &edits)
    };
    // UMTS and EV-DO have none in the uplink.
    let removals = [free(&["ambr.down_mbps", "ambr.up_mbps"]), free(&["ambr.down_mbps"])].concat();
    push(all, Cause::Shaper, "ambr", vec![Evidence::RateCaps {}], removals);
}

/// The default of `radio.grants.request_grant_bytes`.
const USUAL_GRANT_BYTES: u32 = 100;

/// The default of `radio.sr.period_ms`.
const USUAL_SR_MS: u32 = 10;

/// If more than this fraction of blocks fails the first time, something is wrong: the usual target
/// is 0.1.
const OFTEN: f64 = 0.15;

/// The usual target of link adaptation.
const USUAL_BLER: f64 = 0.1;

/// The default of `radio.harq.max_transmissions`.
const USUAL_TRANSMISSIONS: u32 = 4;

/// Number of transmissions after which HARQ loses practically no block: 10 % each time leave one in
/// 10^8.
const PATIENT: u32 = 8;

/// Failing blocks: tried with the mean MCS, with no more than the usual tenth failing the first
/// time and none the second time, so that the rate stays the same.
fn blocks(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let cells = observed.scenario.radio.iter().flat_map(|radio| &radio.ran.cells);
    // In EV-DO the first parts of a packet are expected to fail.
    if cells.clone().any(|cell| matches!(cell.access, Access::Evdo)) {
        return;
    }
    let failing = observed.radio.iter().filter(|(_, _, side)| {
        let bler = side.bler.unwrap_or(0.0);
        bler > OFTEN || side.lost_blocks > 0 || side.rlc_retransmissions > 0
    });
    let mut evidence = Vec::new();
    // For each direction: settings against failures of the first transmission, for a fixed MCS, and
    // against failures of retransmissions.
    let (mut first, mut fixed, mut again) = (Vec::new(), Vec::new(), Vec::new());
    // Settings with which HARQ tries longer.
    let mut patient = Vec::new();
    let mut usual = true;
    for (_, direction, side) in failing {
        let Some(mcs) = side.mcs_mean else { continue };
        let part = |name| KeyPath::new(&of_direction(name, *direction));
        let bler = side.bler.unwrap_or(0.0);
        evidence.push(Evidence::FailedBlocks {
            side: side.id.clone(),
            bler: Percent(bler),
            lost: side.lost_blocks,
            pdus: side.rlc_retransmissions,
        });
        let adaptation = part("link_adaptation");
        usual &= bler <= OFTEN;
        fixed.push(adaptation.set("fixed_mcs", mcs.floor()));
        first.push(adaptation.set("fixed_bler", Literal::rounded(bler.min(USUAL_BLER), 4)));
        again.push(adaptation.set("fixed_bler_retransmission", 0));
        let harq = part("harq");
        for (edits, most) in [(&mut again, USUAL_TRANSMISSIONS), (&mut patient, PATIENT)] {
            edits.push(harq.set("nack_to_ack", 0));
            edits.push(harq.set("max_transmissions", most));
        }
    }
    if evidence.is_empty() {
        return;
    }
    let of = |edits: &[&[Edit]]| everywhere(observed, &edits.concat());
    // If the outer loop has its own settings, the MCS stays adaptive.
    let mut removals = [of(&[&fixed, &first, &again]), of(&[&first, &again])].concat();
    if usual {
        // It is no fault if a tenth of the blocks fails the first time: link adaptation aims at
        // that. Instead each block gets through the second time, or HARQ tries longer.
        removals.splice(0..0, [of(&[&again]), of(&[&patient])].concat());
    }
    push(all, Cause::RadioLoss, "harq", evidence, removals);
}

/// A t-Reordering in ms that leaves HARQ time for its retransmissions: for NR's PDCP (a value of TS
/// 38.331) and for LTE's RLC (a value of TS 36.331).
const SHORT_REORDERING_MS: [u64; 2] = [20, 35];

/// Adds gaps for which a receiver waits although nothing can fill them: HARQ gave up a block in UM, or
/// a handover lost packets (TS 38.323 5.2.2, TS 36.322 5.1.2.2).
fn gaps(observed: &Observed<'_>, radio: &RadioConfig, all: &mut Vec<Candidate>) {
    let handed = match radio.ran.handover.forwarding {
        Forwarding::Nothing => observed.dropped_anywhere("handover"),
        Forwarding::Buffer => 0,
    };
    let (mut evidence, mut edits) = (Vec::new(), Vec::new());
    for &(ue, direction, side) in &observed.radio {
        let Some(rlc) = bearer(radio, ue, direction).map(|bearer| bearer.rlc) else { continue };
        if radio.ran.split_of(UeIndex(ue as u32)).is_some() {
            continue;
        }
        let lost = if rlc.is_acknowledged() { 0 } else { side.lost_blocks };
        let waits = match rlc {
            RlcConfig::Nr { release: Release::InOrder { t_reordering }, .. } => {
                t_reordering.map(|time| (time, SHORT_REORDERING_MS[0]))
            }
            RlcConfig::Lte(LteMode::Um { t_reordering, .. }) => {
                Some((t_reordering, SHORT_REORDERING_MS[1]))
            }
            _ => None,
        };
        let Some((time, short)) = waits else { continue };
        if time <= Duration::from_millis(short) {
            continue;
        }
        let side = side.id.clone();
        evidence.push(match (lost, handed) {
            (0, 0) => continue,
            (0, packets) => Evidence::HandoverGap { side, packets },
            (blocks, _) => Evidence::HarqGap { side, blocks },
        });
        evidence.push(Evidence::BehindAGap { timer: Ms(time.as_millis_f64()) });
        let edit = rlc_of(direction).set("t_reordering_ms", short);
        if !edits.iter().any(|one: &Edit| one.key == edit.key) {
            edits.push(edit);
        }
    }
    if evidence.is_empty() {
        return;
    }
    push(all, Cause::PdcpGap, "rlc", evidence, everywhere(observed, &edits));
}

/// Split bearers: packets that a leg lost after PDCP had numbered them (TS 38.323 5.2.2.2), and legs
/// that wait for each other.
fn legs(observed: &Observed<'_>, radio: &RadioConfig, all: &mut Vec<Candidate>) {
    let Some(split) = &radio.ran.split else { return };
    let table = KeyPath::new("radio.split");
    let short = SHORT_REORDERING_MS[0];
    let mut evidence = Vec::new();
    for &(ue, direction, side) in &observed.radio {
        if radio.ran.split_of(UeIndex(ue as u32)).is_none() {
            continue;
        }
        let buffer = Subject::RadioBuffer { ue: radio.ues[ue].clone(), direction }.to_string();
        // With flow control, what a full leg cannot take is dropped before it has a number.
        let full = (!split.flow_control).then_some("queue_full");
        let reasons = ["aqm", "discarded", "radio_link"].into_iter().chain(full);
        let packets = reasons.map(|reason| observed.dropped(&buffer, reason)).sum();
        if packets > 0 {
            evidence.push(Evidence::LegGap { side: side.id.clone(), packets });
        }
    }
    if !evidence.is_empty() && split.t_reordering > Duration::from_millis(short) {
        evidence.push(Evidence::BehindAGap { timer: Ms(split.t_reordering.as_millis_f64()) });
        let removals = vec![vec![table.set("t_reordering_ms", short)]];
        push(all, Cause::PdcpGap, "split", evidence, removals);
    }
    let cells = [0, split.secondary.0 as usize].map(|cell| radio.cells[cell].as_str());
    let evidence =
        vec![Evidence::Legs { cells: cells.join(" and "), delay: Ms(split.delay.as_millis_f64()) }];
    let removals = vec![
        vec![table.set("secondary_share", "shortest-wait"), table.set("delay_ms", 0)],
        vec![table.set("enabled", false)],
    ];
    push(all, Cause::SplitBearer, "split", evidence, removals);
}

/// Buffers of the base station and of the UEs.
fn buffers(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let late = observed.late_rtt_ms().unwrap_or(f64::MAX);
    let mut links: Vec<_> = (observed.queues.iter())
        .filter_map(|(queue, link)| match queue {
            Subject::RadioBuffer { ue, direction } => {
                Some((queue, limits(observed, ue, *direction)?, *direction, *link))
            }
            _ => None,
        })
        .collect();
    let waited = |link: &LinkSummary| link.queue_delay_ms.as_ref().map_or(0.0, |delay| delay.p95);
    // Settings apply to every UE: the worst buffer stands for all.
    links.sort_by(|one, other| waited(other.3).total_cmp(&waited(one.3)));
    for (buffer, limits, direction, link) in links {
        let rlc = rlc_of(direction);
        let mut add = |cause, evidence, removals| {
            all.push(Candidate::new(cause, buffer.clone(), vec![evidence], removals));
        };
        let wait = waited(link);
        let bdp = link.capacity_mbps * 1e6 / 8.0 * observed.base_rtt_ms().unwrap_or(50.0) / 1e3;
        let has_aqm = limits.discipline != Discipline::DropTail;
        let long = room(limits) > LONGER * bdp && !has_aqm;
        if long && wait > 0.1 * late && observed.dropped(&link.id, "aqm") == 0 {
            let evidence = Evidence::Waited { queue: buffer.clone(), p95: Ms(wait) };
            // Requests, grants and HARQ take longer than CoDel's usual 5 ms.
            let mut edits = managed(direction, "codel").to_vec();
            let mut removals = Vec::new();
            // `rlc_up` inherits from `rlc` what it does not set.
            if direction == Direction::Downlink {
                edits.push(rlc_of(Direction::Uplink).set("aqm", DROP_TAIL));
                removals = everywhere(observed, &edits);
                edits.pop();
            }
            removals.extend(everywhere(observed, &edits));
            add(Cause::Bufferbloat, evidence, removals);
        }
        let full = observed.dropped(&link.id, "queue_full");
        if full > 0 && room(limits) < 2.0 * bdp {
            let wanted = (4.0 * bdp).max(200_000.0).max(4.0 * room(limits)).round();
            let (packets, bdp) = (Count(full as f64), Bytes(bdp));
            let evidence = Evidence::BufferFull { buffer: buffer.clone(), packets, bdp };
            let edits = [rlc.set("buffer_bytes", wanted), rlc.set("buffer_packets", "unlimited")];
            add(Cause::ShortQueue, evidence, everywhere(observed, &edits));
        }
    }
}

/// The table of a radio's name that serves one direction: `rlc_up`.
fn of_direction(name: &str, direction: Direction) -> String {
    match direction {
        Direction::Downlink => name.to_owned(),
        Direction::Uplink => format!("{name}_up"),
    }
}

/// The table of RLC in one direction.
pub(crate) fn rlc_of(direction: Direction) -> KeyPath {
    KeyPath::new(&of_direction("rlc", direction))
}

/// A radio buffer with this AQM, whose times allow for requests, grants and HARQ.
pub(crate) fn managed(direction: Direction, aqm: &str) -> [Edit; 3] {
    let rlc = rlc_of(direction);
    [rlc.set("aqm", aqm), rlc.set("codel_target_ms", 30), rlc.set("codel_interval_ms", 150)]
}

/// Bytes that a radio buffer holds, counting packets as 1,500 bytes.
fn room(limits: &BufferConfig) -> f64 {
    let packets = limits.packets.map(|packets| f64::from(packets) * 1500.0);
    let all = packets.into_iter().chain(limits.bytes.map(|bytes| bytes as f64));
    all.min_by(f64::total_cmp).unwrap_or(f64::MAX)
}

/// The configuration of a radio buffer.
fn limits<'a>(observed: &Observed<'a>, ue: &str, direction: Direction) -> Option<&'a BufferConfig> {
    let radio = observed.scenario.radio.as_ref()?;
    let ue = radio.ues.iter().position(|name| name == ue)?;
    Some(&bearer(radio, ue, direction)?.buffer)
}

/// The bearer of a UE in one direction.
fn bearer(radio: &RadioConfig, ue: usize, direction: Direction) -> Option<&OneWayConfig> {
    let ue = radio.ran.ues.get(ue)?.in_cell.first()?;
    Some(match direction {
        Direction::Downlink => &ue.downlink.bearer,
        Direction::Uplink => &ue.uplink.bearer,
    })
}

/// Edits of `[radio]` for every UE: in each UE's own table if UEs have tables, otherwise, or where
/// those are refused, in `[radio]`.
pub(crate) fn everywhere(observed: &Observed<'_>, edits: &[Edit]) -> Vec<Vec<Edit>> {
    let radio = KeyPath::new("radio");
    let list = KeyPath::new("radio.ue");
    let within = |table: &KeyPath| -> Vec<Edit> {
        edits.iter().map(|edit| edit.clone().within(table)).collect()
    };
    let tables = 0..observed.parsed.document.elements(&list);
    let own: Vec<Edit> = tables.flat_map(|ue| within(&list.at(ue))).collect();
    let shared = within(&radio);
    if own.is_empty() { vec![shared] } else { vec![own, shared] }
}
