//! Paths on which a flow is limited by their rate alone: wires, 3G, LTE and NR, one to three flows,
//! data down or up.

use crate::draft::{Draft, Random, Table, number, quoted, stage};
use crate::outcome::simulated;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Access {
    Wire,
    ThirdGeneration,
    Lte,
    Nr,
}

use Access::{Lte, Nr, ThirdGeneration, Wire};

pub(crate) const ALL: &[Access] = &[Wire, ThirdGeneration, Lte, Nr];
pub(crate) const WIRE: &[Access] = &[Wire];
pub(crate) const RADIO: &[Access] = &[ThirdGeneration, Lte, Nr];
/// Technologies with scheduling requests, DRX and handovers.
pub(crate) const CELLULAR: &[Access] = &[Lte, Nr];

pub(crate) const NR: &[Access] = &[Nr];

/// What a run of the base has shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Rate of all transfers together.
    pub(crate) rate_mbps: f64,
    /// The shortest round-trip time.
    pub(crate) rtt_ms: f64,
}

impl Known {
    pub(crate) fn bdp_bytes(&self) -> f64 {
        self.rate_mbps * 1e6 / 8.0 * self.rtt_ms / 1e3
    }
}

/// Equal flows that share less evenly than this limit each other: Jain's index.
const EVEN: f64 = 0.9;

/// Draws until a base is as required: its bottleneck is full, flows share it evenly, and no RTT is
/// much more than 2.5 times the shortest.
pub(crate) fn base(
    random: &mut Random,
    access: Access,
    most_flows: usize,
    up: Option<bool>,
) -> (Draft, Known) {
    loop {
        let draft = drawn(random, access, most_flows, up);
        let run = simulated(&draft, 999);
        let direction = draft.direction();
        let ours = |id: &str| match id.strip_prefix("radio.") {
            Some(rest) => rest.ends_with(direction),
            None => id.starts_with(direction),
        };
        let busy = run.links.iter().filter(|link| ours(&link.id)).map(|link| link.utilisation);
        let rtts = || run.flows.iter().filter_map(|flow| flow.rtt_ms.as_ref());
        let shortest = rtts().map(|rtt| rtt.min).fold(f64::MAX, f64::min);
        let longest = rtts().map(|rtt| rtt.p95).fold(0.0, f64::max);
        // A radio needs time for grants and retransmissions; on the 3G uplink a UE has only its
        // grant.
        let (full, late) = match access {
            Wire => (0.85, 0.0),
            ThirdGeneration => (if draft.up { 0.45 } else { 0.8 }, 250.0),
            Lte | Nr => (0.8, 50.0),
        };
        let uneven = run.fairness.iter().any(|one| one.jain_index < EVEN);
        if busy.fold(0.0, f64::max) < full || longest > 2.5 * shortest + late || uneven {
            continue;
        }
        let rate_mbps = run.flows.iter().filter_map(|flow| flow.goodput_mbps).sum();
        return (draft, Known { rate_mbps, rtt_ms: shortest });
    }
}

fn drawn(random: &mut Random, access: Access, most_flows: usize, up: Option<bool>) -> Draft {
    let up = up.unwrap_or_else(|| random.chance(0.35));
    let mut draft = Draft { up, ..Draft::default() };
    let one_way = if access == Wire { random.log(6.0, 60.0) } else { random.between(5.0, 25.0) };
    let delay = stage("delay").with("delay_ms", number(one_way));
    (draft.there, draft.back) = (vec![delay.clone()], vec![delay]);
    match access {
        Wire => {
            let rate = random.log(3.0, 25.0);
            draft.seconds = random.between(8.0, 12.0);
            let mut link = stage("link").with("rate_mbps", number(rate));
            if random.chance(0.5) {
                codel(&mut link, "", (0.4 * one_way).max(5.0));
            } else {
                // A queue of the bandwidth-delay product, as routers should have.
                let bdp = rate * 1e6 / 8.0 * 2.0 * one_way / 1e3;
                let bytes = (bdp * random.between(0.7, 1.0)).max(15_000.0);
                link.set("queue_bytes", number(bytes.round()));
            }
            let place = random.below(2);
            draft.there.insert(place, link);
        }
        ThirdGeneration => {
            draft.seconds = 12.0;
            let preset = random.one_of(&["umts-hspa", "umts-hspa-plus", "evdo-rev-a"]);
            draft.radio("").set("preset", quoted(preset));
        }
        Lte => {
            draft.seconds = 10.0;
            let preset = random.one_of(&["lte-5", "lte-5", "lte-10", "lte-tdd-20"]);
            draft.radio("").set("preset", quoted(preset));
            draft.radio("channel").set("sinr_db", number(random.between(4.0, 14.0)));
        }
        Nr => {
            draft.seconds = 8.0;
            let preset = random.one_of(&["nr-fdd-20", "nr-n78"]);
            draft.radio("").set("preset", quoted(preset));
            if preset == "nr-fdd-20" {
                draft.radio("cell").set("bandwidth_mhz", random.one_of(&[5, 10]));
            } else {
                draft.radio("cell").set("bandwidth_mhz", random.one_of(&[10, 20]));
                draft.radio("cell").set("layers_down", 2);
                draft.radio("cell").set("layers_up", 1);
            }
            draft.radio("channel").set("sinr_db", number(random.between(4.0, 14.0)));
        }
    }
    if access != Wire {
        draft.radio("").set("any_timer_value", true);
        draft.radio("rrc").set("enabled", false);
        for name in ["rlc", "rlc_up"] {
            let target = if access == ThirdGeneration { 60.0 } else { 25.0 };
            codel(draft.radio(name), "", target);
        }
    }
    let profile = random.one_of(&["linux-6.18", "linux-6.1", "linux-5.4", "rfc"]);
    let control = random.one_of(&["cubic", "cubic", "cubic", "reno", "bbr"]);
    for _ in 0..1 + random.below(most_flows) {
        draft.flows.push(Table::of(&[
            ("kind", "\"bulk\""),
            ("profile", &quoted(profile)),
            ("congestion", &quoted(control)),
        ]));
    }
    if random.chance(0.35) {
        draft.flows.push(Table::of(&[
            ("kind", "\"ping\""),
            ("interval_ms", "100"),
            ("direction", "\"up\""),
        ]));
    }
    draft
}

pub(crate) fn codel(queue: &mut Table, prefix: &str, target_ms: f64) {
    queue.set(&format!("{prefix}aqm"), "\"codel\"");
    queue.set(&format!("{prefix}codel_target_ms"), number(target_ms));
    queue.set(&format!("{prefix}codel_interval_ms"), number((5.0 * target_ms).max(100.0)));
}
