//! What a `[[flow]]` stands for.

use crate::read::Fields;
use crate::spec::{Chosen, FlowKind};

/// The ids of the flows that a table stands for: one, or as many as `streams` says.
pub(crate) fn flow_ids(flow: &Fields) -> impl Iterator<Item = String> {
    let id = flow.text("id").map(str::to_owned);
    let streams = flow.count("streams");
    id.into_iter().flat_map(move |id| {
        (1..=streams.unwrap_or(1)).map(move |stream| match streams {
            Some(_) => format!("{id}.{stream}"),
            None => id.clone(),
        })
    })
}

/// True for kinds of flows that have TCP endpoints.
pub(crate) fn is_tcp(kind: &str) -> bool {
    match FlowKind::of(kind) {
        Some(FlowKind::Bulk | FlowKind::File) => true,
        Some(FlowKind::Ping | FlowKind::Udp | FlowKind::Quic) | None => false,
    }
}

/// True for kinds of flows that send as much as the path and their congestion control allow.
pub(crate) fn is_transfer(kind: &str) -> bool {
    is_tcp(kind) || FlowKind::of(kind) == Some(FlowKind::Quic)
}
