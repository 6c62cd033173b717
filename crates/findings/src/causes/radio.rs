//! The radio link: buffers, DRX, uplink access, HARQ and RLC, RRC, handovers.

use super::{bytes, count, ms, percent, set};
use crate::candidate::Candidate;
use crate::cause::Cause;
use airpath_base::Duration;
use airpath_radio::bearer::{Forwarding, OneWayConfig};
use airpath_radio::buffer::{BufferConfig, Discipline};
use airpath_radio::cell::Access;
use airpath_radio::pdcp::Release;
use airpath_radio::rlc::{LteMode, RlcConfig};
use airpath_record::LinkSummary;
use airpath_scenario::RadioConfig;

use super::path::LONGER;
use crate::observed::{Observed, direction_of};

pub(super) fn add(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let Some(radio) = &observed.scenario.radio else { return };
    buffers(observed, all);
    let mut push = |cause, subject: &str, evidence: String, sets: &[(&str, String)]| {
        let removals = everywhere(observed, sets);
        all.push(Candidate { cause, subject: subject.to_owned(), evidence, removals });
    };
    let asleep = observed.run.radio.iter().map(|side| side.awake).fold(1.0, f64::min);
    if asleep < 1.0 {
        let evidence = format!("The UE was awake for {} of the time.", percent(asleep));
        push(Cause::Drx, "radio.drx", evidence, &[("drx.enabled", "false".to_owned())]);
    }
    let requests: u64 = observed.run.radio.iter().map(|side| side.scheduling_requests).sum();
    if requests > 0 {
        let evidence = format!(
            "UEs sent {} scheduling requests. These are less frequent, slower or less reliable than usual \
             (every {USUAL_SR_MS} ms).",
            count(requests as f64)
        );
        let removals = usual_requests(observed);
        let subject = "radio.grants".to_owned();
        all.push(Candidate { cause: Cause::UplinkAccess, subject, evidence, removals });
        unreported(observed, radio, all);
    }
    rate_caps(observed, all);
    blocks(observed, all);
    gaps(observed, radio, all);
    let mut push = |cause, subject: &str, evidence: String, sets: &[(&str, String)]| {
        let removals = everywhere(observed, sets);
        all.push(Candidate { cause, subject: subject.to_owned(), evidence, removals });
    };
    push(
        Cause::RrcPromotion,
        "radio.rrc",
        "An idle UE has to connect before it can send or receive.".to_owned(),
        &[("rrc.enabled", "false".to_owned())],
    );
    if radio.cells.len() > 1 {
        handovers(observed, radio, all);
    }
    let lost = observed.dropped_anywhere("radio_link");
    if radio.ran.measurements.as_ref().is_some_and(|measured| measured.failure.is_some()) {
        all.push(Candidate {
            cause: Cause::RadioLinkFailure,
            subject: "radio.mobility".to_owned(),
            evidence: match lost {
                0 => "UEs declare radio link failure and look for another link.".to_owned(),
                _ => format!("UEs declare radio link failure, which lost {lost} packets."),
            },
            removals: vec![vec![set("radio.mobility.link_failure", false)]],
        });
    }
}

/// Usual settings of scheduling requests: their remaining cost belongs to the radio.
fn usual_requests(observed: &Observed<'_>) -> Vec<Vec<String>> {
    let usual = [
        ("sr.period_ms", USUAL_SR_MS.to_string()),
        ("sr.miss_probability", "0".to_owned()),
        ("sr.preparation_ms", "0".to_owned()),
        ("bsr.sr_delay_timer_ms", "\"none\"".to_owned()),
        ("grants.request_grant_bytes", USUAL_GRANT_BYTES.to_string()),
    ];
    // NR and LTE have different names for the same timer.
    let prohibit = [
        ("sr.prohibit_timer_ms", "\"none\"".to_owned()),
        ("sr.prohibit_timer_periods", "0".to_owned()),
    ];
    let with = |timer: (&'static str, String)| {
        let sets: Vec<_> = usual.iter().cloned().chain([timer]).collect();
        everywhere(observed, &sets)
    };
    prohibit.into_iter().flat_map(with).collect()
}

/// Data that arrives after the report of a non-empty buffer triggers no report (TS 38.321 5.4.5).
/// If the base station relies on reports alone, the UE is then silent until retxBSR-Timer expires.
fn unreported(observed: &Observed<'_>, radio: &RadioConfig, all: &mut Vec<Candidate>) {
    let ues = || radio.ran.ues.iter().flat_map(|ue| &ue.in_cell);
    let trusting = ues().filter(|ue| !ue.estimate.assume_more);
    let Some(longest) = trusting.map(|ue| ue.bsr.retransmission).max() else { return };
    let evidence = format!(
        "The base station grants only what buffer status reports ask for: a UE with more to send than it \
         reported waits for retxBSR-Timer, {}.",
        ms(longest.as_millis_f64())
    );
    let removals = everywhere(observed, &[("grants.assume_more", "true".to_owned())]);
    let (cause, subject) = (Cause::UplinkAccess, "radio.bsr".to_owned());
    all.push(Candidate { cause, subject, evidence, removals });
}

/// Handovers that interrupt nothing, lose nothing and happen in time.
fn handovers(observed: &Observed<'_>, radio: &RadioConfig, all: &mut Vec<Candidate>) {
    let of = |keys: &[(&str, &str)]| -> Vec<String> {
        keys.iter().map(|(key, value)| set(format!("radio.mobility.{key}"), value)).collect()
    };
    let seamless = of(&[
        ("interruption_ms", "0"),
        ("forwarding", "\"all\""),
        ("forwarding_delay_ms", "0"),
        ("path_switch_ms", "0"),
    ]);
    // Event A3 waits until the other cell has been better for a while.
    let in_time = of(&[
        ("preparation_ms", "0"),
        ("a3_offset_db", "0"),
        ("a3_hysteresis_db", "0"),
        ("time_to_trigger_ms", "0"),
        ("filter_coefficient", "0"),
    ]);
    let lost = observed.dropped_anywhere("handover");
    let evidence = format!(
        "UEs move between {} cells; each handover interrupts traffic for {}, and handovers lost {lost} packets.",
        radio.cells.len(),
        ms(radio.ran.handover.interruption.as_millis_f64())
    );
    let removals = match radio.ran.planned.is_empty() {
        true => vec![[&seamless[..], &in_time].concat(), seamless],
        false => vec![seamless],
    };
    let (cause, subject) = (Cause::Handover, "radio.mobility".to_owned());
    all.push(Candidate { cause, subject, evidence, removals });
}

/// The aggregate maximum bit rates of UEs, which the scheduler enforces.
fn rate_caps(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let free = |keys: &[&'static str]| {
        let sets: Vec<_> = keys.iter().map(|&key| (key, "\"unlimited\"".to_owned())).collect();
        everywhere(observed, &sets)
    };
    // UMTS and EV-DO have none in the uplink.
    let removals = [free(&["ambr.down_mbps", "ambr.up_mbps"]), free(&["ambr.down_mbps"])].concat();
    let evidence = "The base station limits UEs to their aggregate maximum bit rates.".to_owned();
    let (cause, subject) = (Cause::Shaper, "radio.ambr".to_owned());
    all.push(Candidate { cause, subject, evidence, removals });
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
    let failing = observed.run.radio.iter().filter(|side| {
        let bler = side.bler.unwrap_or(0.0);
        bler > OFTEN || side.lost_blocks > 0 || side.rlc_retransmissions > 0
    });
    let mut seen = Vec::new();
    // For each direction: settings against failures of the first transmission, for a fixed MCS, and
    // against failures of retransmissions.
    let (mut first, mut fixed, mut again) = (Vec::new(), Vec::new(), Vec::new());
    // Settings with which HARQ tries longer.
    let mut patient = Vec::new();
    let mut usual = true;
    for side in failing {
        let Some(mcs) = side.mcs_mean else { continue };
        let up = side.id.ends_with(".up");
        let part = |name: &str| if up { format!("{name}_up") } else { name.to_owned() };
        seen.push(format!(
            "{} of the blocks of {} failed the first time; HARQ gave up on {}, and RLC retransmitted {} PDUs",
            percent(side.bler.unwrap_or(0.0)),
            side.id,
            side.lost_blocks,
            side.rlc_retransmissions
        ));
        let adaptation = part("link_adaptation");
        let bler = side.bler.unwrap_or(0.0);
        usual &= bler <= OFTEN;
        fixed.push((format!("{adaptation}.fixed_mcs"), mcs.floor().to_string()));
        first.push((format!("{adaptation}.fixed_bler"), format!("{:.4}", bler.min(USUAL_BLER))));
        again.push((format!("{adaptation}.fixed_bler_retransmission"), "0".to_owned()));
        let harq = part("harq");
        for (sets, most) in [(&mut again, USUAL_TRANSMISSIONS), (&mut patient, PATIENT)] {
            sets.push((format!("{harq}.nack_to_ack"), "0".to_owned()));
            sets.push((format!("{harq}.max_transmissions"), most.to_string()));
        }
    }
    if seen.is_empty() {
        return;
    }
    let of = |sets: &[&[(String, String)]]| {
        let all = sets.iter().flat_map(|sets| sets.iter());
        let sets: Vec<_> = all.map(|(key, value)| (key.as_str(), value.clone())).collect();
        everywhere(observed, &sets)
    };
    // If the outer loop has its own settings, the MCS stays adaptive.
    let mut removals = [of(&[&fixed, &first, &again]), of(&[&first, &again])].concat();
    if usual {
        // It is no fault if a tenth of the blocks fails the first time: link adaptation aims at
        // that. Instead each block gets through the second time, or HARQ tries longer.
        removals.splice(0..0, [of(&[&again]), of(&[&patient])].concat());
    }
    let (cause, subject) = (Cause::RadioLoss, "radio.harq".to_owned());
    let evidence = format!("{}.", seen.join(". "));
    all.push(Candidate { cause, subject, evidence, removals });
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
    let (mut said, mut sets) = (Vec::new(), Vec::new());
    for side in &observed.run.radio {
        let up = side.id.ends_with(".up");
        let Some(rlc) = bearer_of(radio, &side.id).map(|bearer| bearer.rlc) else { continue };
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
        let why = match (lost, handed) {
            (0, 0) => continue,
            (0, handed) => format!("handovers lost {handed} packets"),
            (lost, _) => format!("HARQ gave up {lost} blocks, and RLC is unacknowledged"),
        };
        said.push(format!(
            "In {} {why}. A packet behind such a gap waits for t-Reordering, {}; when it expires, all waiting \
             packets are delivered at once.",
            side.id,
            ms(time.as_millis_f64())
        ));
        let part = if up { "rlc_up" } else { "rlc" };
        let key = format!("{part}.t_reordering_ms");
        if !sets.iter().any(|(one, _)| *one == key) {
            sets.push((key, short.to_string()));
        }
    }
    if said.is_empty() {
        return;
    }
    let sets: Vec<_> = sets.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    all.push(Candidate {
        cause: Cause::PdcpGap,
        subject: "radio.rlc".to_owned(),
        evidence: said.join(" "),
        removals: everywhere(observed, &sets),
    });
}

/// Buffers of the base station and of the UEs.
fn buffers(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let late = observed.late_rtt_ms().unwrap_or(f64::MAX);
    let mut links: Vec<_> =
        observed.run.links.iter().filter(|link| link.id.starts_with("radio.")).collect();
    let waited = |link: &LinkSummary| link.queue_delay_ms.as_ref().map_or(0.0, |delay| delay.p95);
    // Settings apply to every UE: the worst buffer stands for all.
    links.sort_by(|one, other| waited(other).total_cmp(&waited(one)));
    for link in links {
        let part = if direction_of(&link.id) == "up" { "rlc_up" } else { "rlc" };
        let wait = waited(link);
        let bdp = link.capacity_mbps * 1e6 / 8.0 * observed.base_rtt_ms().unwrap_or(50.0) / 1e3;
        let long = room(observed, &link.id) > LONGER * bdp && !has_aqm(observed, &link.id);
        if long && wait > 0.1 * late && observed.dropped(&link.id, "aqm") == 0 {
            let evidence =
                format!("One packet in twenty waits {} or longer in {}.", ms(wait), link.id);
            let key = format!("{part}.aqm");
            // Requests, grants and HARQ take longer than CoDel's usual 5 ms.
            let (target, interval) =
                (format!("{part}.codel_target_ms"), format!("{part}.codel_interval_ms"));
            let mut sets: Vec<(&str, String)> = vec![
                (key.as_str(), "\"codel\"".to_owned()),
                (&target, "30".to_owned()),
                (&interval, "150".to_owned()),
            ];
            let mut removals = Vec::new();
            // `rlc_up` inherits from `rlc` what it does not set.
            if part == "rlc" {
                sets.push(("rlc_up.aqm", "\"drop-tail\"".to_owned()));
                removals = everywhere(observed, &sets);
                sets.pop();
            }
            removals.extend(everywhere(observed, &sets));
            let (cause, subject) = (Cause::Bufferbloat, link.id.clone());
            all.push(Candidate { cause, subject, evidence, removals });
        }
        let full = observed.dropped(&link.id, "queue_full");
        if full > 0 && room(observed, &link.id) < 2.0 * bdp {
            let wanted = (4.0 * bdp).max(200_000.0).max(4.0 * room(observed, &link.id)).round();
            let evidence = format!(
                "{} packets found {} full; the BDP is {}.",
                count(full as f64),
                link.id,
                bytes(bdp)
            );
            let (in_bytes, in_packets) =
                (format!("{part}.buffer_bytes"), format!("{part}.buffer_packets"));
            let sets =
                [(&*in_bytes, wanted.to_string()), (&*in_packets, "\"unlimited\"".to_owned())];
            let (cause, subject) = (Cause::ShortQueue, link.id.clone());
            let removals = everywhere(observed, &sets);
            all.push(Candidate { cause, subject, evidence, removals });
        }
    }
}

/// Whether a radio buffer already has an AQM.
fn has_aqm(observed: &Observed<'_>, buffer: &str) -> bool {
    limits(observed, buffer).is_some_and(|limits| limits.discipline != Discipline::DropTail)
}

/// Bytes that a radio buffer holds, counting packets as 1,500 bytes.
fn room(observed: &Observed<'_>, buffer: &str) -> f64 {
    let Some(limits) = limits(observed, buffer) else { return f64::MAX };
    let packets = limits.packets.map(|packets| f64::from(packets) * 1500.0);
    let all = packets.into_iter().chain(limits.bytes.map(|bytes| bytes as f64));
    all.min_by(f64::total_cmp).unwrap_or(f64::MAX)
}

/// The configuration of a radio buffer.
fn limits<'a>(observed: &Observed<'a>, buffer: &str) -> Option<&'a BufferConfig> {
    let radio = observed.scenario.radio.as_ref()?;
    Some(&bearer_of(radio, buffer.strip_prefix("radio.")?)?.buffer)
}

/// The bearer of a UE in one direction, by a name such as `phone.down`.
fn bearer_of<'a>(radio: &'a RadioConfig, side: &str) -> Option<&'a OneWayConfig> {
    let of_ue = |(index, name): (usize, &String)| {
        let up = match side.strip_prefix(name.as_str())? {
            ".up" => true,
            ".down" => false,
            _ => return None,
        };
        let ue = radio.ran.ues.get(index)?.in_cell.first()?;
        Some(if up { &ue.uplink.bearer } else { &ue.downlink.bearer })
    };
    radio.ues.iter().enumerate().find_map(of_ue)
}

/// A setting of `[radio]` for every UE: in each UE's own table if UEs have tables, otherwise in
/// `[radio]`.
pub(crate) fn everywhere(observed: &Observed<'_>, sets: &[(&str, String)]) -> Vec<Vec<String>> {
    let of_ue =
        |ue: usize| sets.iter().map(move |(key, value)| set(format!("radio.ue.{ue}.{key}"), value));
    let own = (0..observed.ue_tables).flat_map(of_ue).collect();
    let shared = sets.iter().map(|(key, value)| set(format!("radio.{key}"), value)).collect();
    vec![own, shared]
}
