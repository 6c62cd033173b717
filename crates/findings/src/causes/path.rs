//! What lies on the path between UE and server.

use airpath_path::{Aqm, Excess, LinkConfig, MiddleboxKind, MiddleboxSide, StageConfig};
use airpath_scenario::{Edit, NamedStage, StageId};

use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::evidence::Evidence;
use crate::observed::{Observed, is_shaper};
use crate::subject::Subject;
use crate::text::{Bytes, Count, Mbps, Ms, Percent};

/// Bytes of the largest packet that airpath sends unless configured otherwise.
pub(super) const PACKET: f64 = 1500.0;

pub(super) fn add(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    middleboxes(observed, all);
    for stage in observed.stages() {
        let (id, key) = (stage.id, stage.id.key());
        let mut push = |cause, evidence, removal: Edit| {
            let removals = vec![vec![removal]];
            all.push(Candidate::new(cause, Subject::Stage(id), vec![evidence], removals));
        };
        let mut try_without = |cause, evidence| push(cause, evidence, key.set("enabled", false));
        let lost = |reason| observed.dropped(&stage.name, reason);
        let lost_by = |reason| observed.lost_by(&[id], &[reason]);
        match &stage.stage {
            StageConfig::Loss(_) if lost("loss") > 0 => {
                try_without(Cause::RandomLoss, Evidence::Lost { stage: id, lost: lost_by("loss") })
            }
            StageConfig::Policer(policer) => {
                let excess = policer.excess;
                if lost("policed") > 0 || excess == Excess::Mark {
                    let rate = Mbps(policer.rate.bps() as f64 / 1e6);
                    let (burst, dropped) = (Count(policer.burst as f64), lost_by("policed"));
                    try_without(
                        Cause::Policer,
                        Evidence::Policed { stage: id, rate, burst, dropped },
                    );
                }
            }
            StageConfig::Batch { interval } => try_without(
                Cause::AckBatching,
                Evidence::Batched { stage: id, interval: Ms(interval.as_millis_f64()) },
            ),
            StageConfig::Link(link) => self::link(observed, stage, link, all),
            StageConfig::Delay(delay)
                if delay.jitter.as_ref().is_some_and(|jitter| !jitter.keep_order) =>
            {
                let evidence = Evidence::Reordered { stage: id };
                push(Cause::Reordering, evidence, key.set("keep_order", true));
            }
            _ => {}
        }
    }
    servers(observed, all);
    proxy(observed, all);
}

/// A queue is too short if it holds less than this fraction of what the path, or a first window,
/// holds.
const SHORTER: f64 = 0.9;

/// A queue is too long if it holds more than this many times what the path holds.
pub(super) const LONGER: f64 = 1.15;

/// Rate of acknowledgements relative to the data: 52 bytes per two segments of 1,500.
const ACKNOWLEDGEMENTS: f64 = 52.0 / 3000.0;

/// Candidates of a link: a queue too short or too long, a shaper's rate.
fn link(observed: &Observed<'_>, stage: &NamedStage, link: &LinkConfig, all: &mut Vec<Candidate>) {
    let (id, key) = (stage.id, stage.id.key());
    let Some(seen) = observed.link(&Subject::Stage(id)) else { return };
    let mut push = |cause, evidence, removal| {
        all.push(Candidate::new(cause, Subject::Stage(id), vec![evidence], vec![removal]));
    };
    let busy = Percent(seen.utilisation);
    if is_shaper(link) && seen.utilisation > 0.5 {
        push(
            Cause::Shaper,
            Evidence::Shaped { stage: id, rate: Mbps(seen.capacity_mbps), busy },
            vec![key.set("enabled", false)],
        );
    }
    let queue = &link.queue;
    let in_bytes = queue.bytes.map(|bytes| bytes as f64);
    let in_packets = queue.packets.map(|packets| f64::from(packets) * PACKET);
    let limit = in_bytes.into_iter().chain(in_packets).min_by(f64::total_cmp);
    let full = observed.dropped(&stage.name, "queue_full");
    let bdp = seen.capacity_mbps * 1e6 / 8.0 * observed.base_rtt_ms().unwrap_or(100.0) / 1e3;
    if let Some(limit) = limit.filter(|&limit| full > 0 && limit < SHORTER * bdp.max(10.0 * PACKET))
    {
        let wanted = (2.0 * bdp).max(4.0 * limit).max(30.0 * PACKET);
        let mut sets = Vec::new();
        if queue.bytes.is_some() {
            sets.push(key.set("queue_bytes", wanted.round()));
        }
        if queue.packets.is_some() {
            sets.push(key.set("queue_packets", (wanted / PACKET).ceil()));
        }
        push(
            Cause::ShortQueue,
            Evidence::QueueFull {
                stage: id,
                holds: Bytes(limit),
                bdp: Bytes(bdp),
                packets: Count(full as f64),
            },
            sets,
        );
    }
    let wait = seen.queue_delay_ms.as_ref().map_or(0.0, |delay| delay.p95);
    let long = limit.is_none_or(|limit| limit > LONGER * bdp.max(10.0 * PACKET));
    if long && queue.aqm == Aqm::DropTail && wait > 0.1 * observed.late_rtt_ms().unwrap_or(f64::MAX)
    {
        push(
            Cause::Bufferbloat,
            Evidence::Waited { queue: Subject::Stage(id), p95: Ms(wait) },
            managed(id, "codel", seen.capacity_mbps, observed.base_rtt_ms().unwrap_or(0.0)),
        );
    }
    let forth = id.direction.reverse();
    let data = observed.tcp_flows().any(|(flow, _)| flow.direction == forth);
    let fast = observed.bottleneck(forth).map_or(f64::MAX, |link| link.capacity_mbps);
    if data
        && ACKNOWLEDGEMENTS * fast > 0.1 * seen.capacity_mbps
        && seen.utilisation > 0.5
        && matches!(link.service, airpath_path::ServiceConfig::Rate(_))
    {
        // Ten times the rate, or as much as makes acknowledgements take a tenth of the link if that
        // is more.
        let enough = (10.0 * ACKNOWLEDGEMENTS * fast).max(10.0 * seen.capacity_mbps);
        let enough = if fast < f64::MAX { enough } else { 10.0 * seen.capacity_mbps };
        push(
            Cause::AckStarvation,
            Evidence::CarriesAcknowledgements { stage: id, busy },
            vec![key.set("rate_mbps", (1e3 * enough).ceil() / 1e3)],
        );
    }
}

/// A queue with this AQM. On a slow link a single packet takes longer than CoDel's usual target of
/// 5 ms (RFC 8289 4.4). The interval is no shorter than a round trip (RFC 8289 4.3).
pub(crate) fn managed(stage: StageId, aqm: &str, rate_mbps: f64, rtt_ms: f64) -> Vec<Edit> {
    let key = stage.key();
    let packet_ms = PACKET * 8.0 / 1e3 / rate_mbps.max(1e-3);
    let mut sets = vec![key.set("aqm", aqm)];
    let target = (1.5 * packet_ms).max(rtt_ms / 20.0).ceil();
    if target > 5.0 {
        let interval = (10.0 * target).max(rtt_ms).round();
        sets.push(key.set("codel_target_ms", target));
        sets.push(key.set("codel_interval_ms", interval.max(100.0)));
    }
    sets
}

/// NATs and firewalls exist in both directions: the first of the uplink is the last of the
/// downlink.
fn middleboxes(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    fn of(stages: &[NamedStage], wanted: MiddleboxKind) -> Vec<&NamedStage> {
        let is = |stage: &&NamedStage| matches!(&stage.stage, StageConfig::Middlebox(one) if one.kind == wanted);
        stages.iter().filter(is).collect()
    }
    for kind in [MiddleboxKind::Firewall, MiddleboxKind::Nat] {
        let up = of(&observed.scenario.up, kind);
        let down = of(&observed.scenario.down, kind);
        for (index, stage) in up.iter().enumerate() {
            let mirror = down.len().checked_sub(1 + index).and_then(|at| down.get(at));
            let both: Vec<StageId> =
                [Some(stage), mirror].into_iter().flatten().map(|stage| stage.id).collect();
            let lost = observed.lost_by(&both, &["no_binding", "blocked"]);
            if lost.packets() == 0 {
                continue;
            }
            let id = stage.id;
            let all_at = |one: StageId| {
                observed.lost_by(&[one], &["no_binding", "blocked"]).packets() == lost.packets()
            };
            let way = match (all_at(id), mirror.is_some_and(|other| all_at(other.id))) {
                (true, _) => " in the uplink",
                (_, true) => " in the downlink",
                _ => "",
            };
            let off = || both.iter().map(|id| id.key().set("enabled", false)).collect();
            let (box_kind, why) = match kind {
                MiddleboxKind::Nat => ("NAT", ": it had no binding for them"),
                MiddleboxKind::Firewall => ("firewall", ": the UE had not sent first"),
            };
            let blocked = Evidence::Blocked { box_kind, stage: id, lost, way, why };
            let mut push = |cause, more: Option<Evidence>, removal: Vec<Edit>| {
                let evidence = std::iter::once(blocked.clone()).chain(more).collect();
                all.push(Candidate::new(cause, Subject::Stage(id), evidence, vec![removal]));
            };
            if kind == MiddleboxKind::Firewall {
                push(Cause::OneWayPath, None, off());
                continue;
            }
            if up.len() > 1 {
                push(Cause::DoubleNat, Some(Evidence::InARow { nats: up.len() }), off());
            }
            if let StageConfig::Middlebox(middlebox) = &stage.stage
                && let MiddleboxSide::Outward(timer) = middlebox.side
            {
                let expires = Evidence::Expires { after_s: timer.timeout.as_secs_f64() };
                let forever = id.key().set("timeout_s", 1_000_000);
                push(Cause::NatBinding, Some(expires), vec![forever]);
            }
        }
    }
}

/// The path between the UPF and the server.
fn servers(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let far = |stage: &NamedStage| match &stage.stage {
        StageConfig::Delay(delay) if stage.id.kind == "server" => {
            Some((stage.id, delay.base.as_millis_f64()))
        }
        _ => None,
    };
    let far: Vec<(StageId, f64)> = observed.stages().filter_map(far).collect();
    let away: f64 = far.iter().map(|(_, delay)| delay).sum();
    let Some(&(first, _)) =
        far.first().filter(|_| away >= 0.1 * observed.base_rtt_ms().unwrap_or(10.0))
    else {
        return;
    };
    let evidence = vec![Evidence::FarServer { edge: observed.edge(), round_trip: Ms(away) }];
    let each = |edit: fn(StageId) -> Edit| far.iter().map(|&(id, _)| edit(id)).collect();
    let beside = each(|id| id.key().set("place", "upf"));
    let removals = vec![beside, each(|id| id.key().set("enabled", false))];
    all.push(Candidate::new(Cause::Placement, Subject::Stage(first), evidence, removals));
}

fn proxy(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let Some(proxy) = &observed.scenario.proxy else { return };
    let ends = [&proxy.down, &proxy.up];
    let off = ends.map(|end| end.id.key().set("enabled", false)).into();
    let subject = Subject::Stage(proxy.down.id);
    all.push(Candidate::new(Cause::Proxy, subject, vec![Evidence::Proxied {}], vec![off]));
}
