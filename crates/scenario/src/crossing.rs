//! What the path and the flows that cross it need of each other.

use airpath_base::Duration;

use crate::document::{Stage, is_tcp};
use crate::problem::Problems;
use crate::proxy;
use crate::radio::Radio;
use crate::read::Fields;

/// A queue that can never hold a flow's full packets is a mistake, not an experiment.
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
        if let Some(queue) = stage.fields.count("queue_bytes")
            && queue < packet
        {
            problems.add(
                stage.fields.origin_of("queue_bytes"),
                format!(
                    "`queue_bytes` ({queue}) cannot hold one packet of flow {:?} ({packet} bytes)",
                    flow.text("id").unwrap_or_default()
                ),
            );
        }
    }
}

/// The same of the bearers' buffers.
pub(crate) fn check_buffers(radio: Option<&Radio>, flows: &[Fields], problems: &mut Problems) {
    let Some(radio) = radio else { return };
    for flow in flows {
        let Some(ue) = flow.text("ue").and_then(|name| radio.ue(name)) else { continue };
        for (direction, part) in [("down", "rlc"), ("up", "rlc_up")] {
            let bearer = ue.part(part);
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
    let ((from_server, proxy, to_ue), (from_ue, _, to_server)) =
        (proxy::split(down), proxy::split(up));
    let sides: &[_] = match proxy {
        None => &[("the path", down, up)],
        Some(_) => &[
            ("the path between the server and the proxy", from_server, to_server),
            ("the path between the proxy and the UE", from_ue, to_ue),
        ],
    };
    // The radio takes time; it is at the UE's end.
    let sides = if radio { &sides[..sides.len() - 1] } else { sides };
    for (name, there, back) in sides {
        if !there.iter().chain(*back).any(takes_time) {
            problems.add_with_help(
                tcp.origin_of("kind"),
                format!(
                    "{name} takes no time, so that flow {:?} would send all it has at one instant",
                    tcp.text("id").unwrap_or_default()
                ),
                "add a stage to [[path.down]] or [[path.up]], e.g. stage = \"link\" with \
                 rate_mbps, or stage = \"delay\" with delay_ms",
            );
        }
    }
}

fn takes_time(stage: &Stage) -> bool {
    match stage.fields.variant {
        Some("delay") => ["delay_ms", "jitter_ms"]
            .iter()
            .any(|key| stage.fields.time(key).is_some_and(|time| time > Duration::ZERO)),
        Some("loss" | "gilbert-elliott") => false,
        // A link or a trace; or a stage that was refused for another reason.
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
