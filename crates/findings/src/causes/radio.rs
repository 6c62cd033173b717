//! The radio link: buffers, DRX, uplink access, HARQ and RLC, RRC, changes of cell.

use super::{bytes, ms, percent, set};
use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::facts::{Facts, direction_of};

pub(super) fn add(facts: &Facts<'_>, all: &mut Vec<Candidate>) {
    let Some(radio) = &facts.scenario.radio else { return };
    let mut push = |cause, subject: &str, evidence: String, sets: &[(&str, String)]| {
        let removals = everywhere(facts, sets);
        all.push(Candidate { cause, subject: subject.to_owned(), evidence, removals });
    };
    buffers(facts, &mut push);
    let asleep = facts.run.radio.iter().map(|side| side.awake).fold(1.0, f64::min);
    if asleep < 1.0 {
        let evidence = format!("The UE was awake for {} of the time.", percent(asleep));
        push(Cause::Drx, "radio.drx", evidence, &[("drx.enabled", "false".to_owned())]);
    }
    let requests: u64 = facts.run.radio.iter().map(|side| side.scheduling_requests).sum();
    if requests > 0 {
        push(
            Cause::UplinkAccess,
            "radio.grants",
            format!("UEs sent {requests} scheduling requests before they could send."),
            &[
                ("grants.proactive_period_ms", "1".to_owned()),
                ("grants.proactive_bytes", "200".to_owned()),
            ],
        );
    }
    blocks(facts, &mut push);
    let promoted: u64 = facts.run.radio.iter().map(|side| side.random_accesses).sum();
    push(
        Cause::RrcPromotion,
        "radio.rrc",
        format!("UEs connect before they send ({promoted} random accesses)."),
        &[("rrc.enabled", "false".to_owned())],
    );
    if radio.cells.len() > 1 {
        all.push(Candidate {
            cause: Cause::Handover,
            subject: "radio.mobility".to_owned(),
            evidence: format!(
                "UEs change between {} cells; each change takes {}.",
                radio.cells.len(),
                ms(radio.ran.handover.interruption.as_millis_f64())
            ),
            removals: vec![vec![
                set("radio.mobility.interruption_ms", 0),
                set("radio.mobility.forwarding", "\"all\""),
                set("radio.mobility.forwarding_delay_ms", 0),
                set("radio.mobility.path_switch_ms", 0),
            ]],
        });
    }
    let lost = facts.dropped_anywhere("radio_link");
    if radio.ran.measurements.as_ref().is_some_and(|measured| measured.failure.is_some()) {
        all.push(Candidate {
            cause: Cause::RadioLinkFailure,
            subject: "radio.mobility".to_owned(),
            evidence: format!("A radio link that is bad is given up; {lost} packets went with it."),
            removals: vec![vec![set("radio.mobility.link_failure", false)]],
        });
    }
}

/// More blocks than these fail the first time where all is well: the usual target is 0.1.
const OFTEN: f64 = 0.15;

/// Blocks that fail: tried with the mean MCS and none failing, so that the rate stays what it is.
fn blocks(facts: &Facts<'_>, push: &mut impl FnMut(Cause, &str, String, &[(&str, String)])) {
    let failing = facts.run.radio.iter().filter(|side| {
        let bler = side.bler.unwrap_or(0.0);
        bler > OFTEN || side.lost_blocks > 0 || side.rlc_retransmissions > 0
    });
    let (mut given_up, mut sets) = (0, Vec::new());
    for side in failing {
        let Some(mcs) = side.mcs_mean else { continue };
        let part = if side.id.ends_with(".up") { "link_adaptation_up" } else { "link_adaptation" };
        given_up += side.lost_blocks;
        sets.push((format!("{part}.fixed_mcs"), mcs.floor().to_string()));
        sets.push((format!("{part}.fixed_bler"), "0".to_owned()));
    }
    if sets.is_empty() {
        return;
    }
    let sets: Vec<_> = sets.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    let evidence = format!("Many blocks fail; HARQ gave {given_up} up.");
    push(Cause::RadioLoss, "radio.harq", evidence, &sets);
}

/// Buffers of the base station and of the UEs.
fn buffers(facts: &Facts<'_>, push: &mut impl FnMut(Cause, &str, String, &[(&str, String)])) {
    let late = facts.late_rtt_ms().unwrap_or(f64::MAX);
    for link in facts.run.links.iter().filter(|link| link.id.starts_with("radio.")) {
        let part = if direction_of(&link.id) == "up" { "rlc_up" } else { "rlc" };
        let wait = link.queue_delay_ms.as_ref().map_or(0.0, |delay| delay.p95);
        if wait > 0.1 * late && facts.dropped(&link.id, "aqm") == 0 {
            let evidence = format!("Packets wait up to {} (p95) in {}.", ms(wait), link.id);
            let key = format!("{part}.aqm");
            // Requests, grants and HARQ take longer than CoDel's usual 5 ms.
            let (target, interval) =
                (format!("{part}.codel_target_ms"), format!("{part}.codel_interval_ms"));
            push(
                Cause::Bufferbloat,
                &link.id,
                evidence,
                &[
                    (&key, "\"codel\"".to_owned()),
                    (&target, "30".to_owned()),
                    (&interval, "150".to_owned()),
                ],
            );
        }
        let full = facts.dropped(&link.id, "queue_full");
        let bdp = link.capacity_mbps * 1e6 / 8.0 * facts.base_rtt_ms().unwrap_or(50.0) / 1e3;
        if full > 0 && room(facts, &link.id) < 2.0 * bdp {
            let wanted = (4.0 * bdp).max(200_000.0).max(4.0 * room(facts, &link.id)).round();
            let evidence =
                format!("{full} packets found {} full; the path holds {}.", link.id, bytes(bdp));
            let (in_bytes, in_packets) =
                (format!("{part}.buffer_bytes"), format!("{part}.buffer_packets"));
            push(
                Cause::ShortQueue,
                &link.id,
                evidence,
                &[(&in_bytes, wanted.to_string()), (&in_packets, "\"unlimited\"".to_owned())],
            );
        }
    }
}

/// Bytes that a radio buffer holds, packets at 1,500 bytes.
fn room(facts: &Facts<'_>, buffer: &str) -> f64 {
    let of_ue = |(index, name): (usize, &String)| {
        let up = match buffer.strip_prefix("radio.")?.strip_prefix(name.as_str())? {
            ".up" => true,
            ".down" => false,
            _ => return None,
        };
        let ue = facts.scenario.radio.as_ref()?.ran.ues.get(index)?.in_cell.first()?;
        let limit = if up { &ue.uplink.bearer.buffer } else { &ue.downlink.bearer.buffer };
        let packets = limit.packets.map(|packets| f64::from(packets) * 1500.0);
        let limits = packets.into_iter().chain(limit.bytes.map(|bytes| bytes as f64));
        limits.min_by(f64::total_cmp)
    };
    let radio = facts.scenario.radio.iter().flat_map(|radio| radio.ues.iter().enumerate());
    radio.filter_map(of_ue).next().unwrap_or(f64::MAX)
}

/// A setting of `[radio]` also in every UE's own table, where UEs have tables; else in `[radio]`.
pub(crate) fn everywhere(facts: &Facts<'_>, sets: &[(&str, String)]) -> Vec<Vec<String>> {
    let of_ue =
        |ue: usize| sets.iter().map(move |(key, value)| set(format!("radio.ue.{ue}.{key}"), value));
    let own = (0..facts.ue_tables).flat_map(of_ue).collect();
    let shared = sets.iter().map(|(key, value)| set(format!("radio.{key}"), value)).collect();
    vec![own, shared]
}
