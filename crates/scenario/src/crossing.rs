//! What the path and the flows that cross it need of each other.

use airpath_base::Duration;

use crate::document::{Stage, is_tcp};
use crate::problem::Problems;
use crate::proxy;
use crate::radio::Radio;
use crate::read::Fields;

/// A queue or a bucket that can never hold a flow's full packets is a mistake, not an experiment.
pub(crate) fn check_queues(
    stages: &[Stage],
    direction: &str,
    flows: &[Fields],
    problems: &mut Problems,
) {
    let (before, proxy, after) = proxy::split(stages);
    check_hop_queues(before, None, direction, flows, problems);
    check_hop_queues(after, proxy, direction, flows, problems);
}

/// Those of the stages up to a proxy or the end; `sender` is the proxy before them.
fn check_hop_queues(
    stages: &[Stage],
    sender: Option<&Stage>,
    direction: &str,
    flows: &[Fields],
    problems: &mut Problems,
) {
    let size = |flow: &Fields| {
        let packet = packet_bytes(flow, direction)?;
        let tcp = flow.variant.is_some_and(is_tcp);
        sender.filter(|_| tcp).map_or(Some(packet), |proxy| full_segment(&proxy.fields))
    };
    let largest = flows.iter().filter_map(|flow| Some((size(flow)?, flow)));
    let Some((packet, flow)) = largest.max_by_key(|&(packet, _)| packet) else { return };
    for stage in stages {
        for key in ["queue_bytes", "burst_bytes"] {
            if let Some(bytes) = stage.fields.count(key)
                && bytes < packet
            {
                problems.add(
                    stage.fields.origin_of(key),
                    format!(
                        "`{key}` ({bytes}) cannot hold one packet of flow {:?} ({packet} bytes)",
                        flow.text("id").unwrap_or_default()
                    ),
                );
            }
        }
    }
}

/// The same of the bearers' buffers.
pub(crate) fn check_buffers(radio: Option<&Radio>, flows: &[Fields], problems: &mut Problems) {
    let Some(radio) = radio else { return };
    for flow in flows {
        let Some(ue) = flow.text("ue").and_then(|name| radio.ue(name)) else { continue };
        for (direction, part) in [("down", "rlc"), ("up", "rlc_up")] {
            let bearer = ue.tables.part(part);
            if let (Some(packet), Some(buffer)) =
                (packet_bytes(flow, direction), bearer.count("buffer_bytes"))
                && buffer < packet
            {
                problems.add(
                    bearer.origin_of("buffer_bytes"),
                    format!(
                        "`buffer_bytes` ({buffer}) cannot hold one packet of flow {:?} ({packet} \
                         bytes)",
                        flow.text("id").unwrap_or_default()
                    ),
                );
            }
        }
    }
}

/// TCP over a path that takes no time would send everything, without end, at its first instant; so
/// would one end and a proxy, up to their buffers.
pub(crate) fn check_time_passes(
    down: &[Stage],
    up: &[Stage],
    radio: bool,
    flows: &[Fields],
    problems: &mut Problems,
) {
    let Some(tcp) = flows.iter().find(|flow| flow.variant.is_some_and(is_tcp)) else { return };
    let sides = proxy::sides(down, up);
    // The radio takes time; it is at the UE's end.
    let wired = if radio { sides.len() - 1 } else { sides.len() };
    for side in &sides[..wired] {
        if !side.down.iter().chain(side.up).any(takes_time) {
            problems.add_with_help(
                tcp.origin_of("kind"),
                format!(
                    "{} takes no time, so that flow {:?} would send all it has at one instant",
                    side.name,
                    tcp.text("id").unwrap_or_default()
                ),
                "add a stage to [[path.down]] or [[path.up]], e.g. stage = \"link\" with \
                 rate_mbps, or stage = \"delay\" with delay_ms",
            );
        }
    }
}

fn takes_time(stage: &Stage) -> bool {
    let any = |keys: [&str; 2]| {
        keys.iter().any(|key| stage.fields.time(key).is_some_and(|time| time > Duration::ZERO))
    };
    match stage.fields.variant {
        Some("delay") => any(["delay_ms", "jitter_ms"]),
        Some("host") => any(["processing_ms", "coalescing_ms"]),
        Some("loss" | "gilbert-elliott" | "policer" | "gtpu" | "mtu" | "nat" | "firewall") => false,
        // A link, a trace, a shaper or a place; or a stage that was refused for another reason.
        _ => true,
    }
}

/// Size of a flow's data packets that pass in this direction.
fn packet_bytes(flow: &Fields, direction: &str) -> Option<u64> {
    match flow.variant? {
        // Request and reply have one size.
        "ping" => flow.count("packet_bytes"),
        _ if flow.text("direction") != Some(direction) => None,
        "udp" => flow.count("packet_bytes"),
        _ => full_segment(flow),
    }
}

/// IP packet size of a full segment of an endpoint.
fn full_segment(endpoint: &Fields) -> Option<u64> {
    Some(endpoint.count("mss_bytes")? + endpoint.count("header_bytes")?)
}
