//! Checks of queues and token buckets against the packets of the flows.

use airpath_base::Direction;

use airpath_quic::HEADER_BYTES;

use crate::flow::is_tcp;
use crate::problem::Problems;
use crate::proxy;
use crate::radio::Radio;
use crate::read::Fields;
use crate::spec::{Chosen, FlowKind};
use crate::stage::Stage;

/// Refuses a queue or bucket that can never hold a full packet of a flow: that is a mistake, not an
/// experiment.
pub(crate) fn check(
    stages: &[Stage],
    direction: Direction,
    flows: &[Fields],
    problems: &mut Problems,
) {
    let (before, proxy, after) = proxy::split(stages);
    check_hop_queues(before, None, direction, flows, problems);
    check_hop_queues(after, proxy, direction, flows, problems);
}

/// Checks the queues of one section, which ends at a proxy or at the end of the path. `sender` is
/// the proxy that sends into it, if there is one.
fn check_hop_queues(
    stages: &[Stage],
    sender: Option<&Stage>,
    direction: Direction,
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

/// Checks the bearers' buffers in the same way.
pub(crate) fn check_buffers(radio: Option<&Radio>, flows: &[Fields], problems: &mut Problems) {
    let Some(radio) = radio else { return };
    for flow in flows {
        let Some(ue) = flow.text("ue").and_then(|name| radio.ue(name)) else { continue };
        for (direction, part) in [(Direction::Downlink, "rlc"), (Direction::Uplink, "rlc_up")] {
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

/// Size in bytes of the data packets that a flow sends in this direction.
fn packet_bytes(flow: &Fields, direction: Direction) -> Option<u64> {
    match FlowKind::of(flow.variant?)? {
        // Request and reply have the same size.
        FlowKind::Ping => flow.count("packet_bytes"),
        _ if flow.text("direction") != Some(direction.name()) => None,
        FlowKind::Udp => flow.count("packet_bytes"),
        FlowKind::Bulk | FlowKind::File => full_segment(flow),
        // Larger ones are only tried.
        FlowKind::Quic => Some(flow.count("mtu.initial_bytes")? + u64::from(HEADER_BYTES)),
    }
}

/// IP packet size in bytes of a full segment of an endpoint.
fn full_segment(endpoint: &Fields) -> Option<u64> {
    Some(endpoint.count("mss_bytes")? + endpoint.count("options.header_bytes")?)
}
