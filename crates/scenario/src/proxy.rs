//! The TCP proxy's position in the two lists of stages.

use crate::stage::Stage;

/// The proxy's kind of stage.
pub(crate) const STAGE: &str = "proxy";

/// The stages before the proxy, the proxy, and the stages after it; without a proxy all stages come
/// first.
pub(crate) fn split(stages: &[Stage]) -> (&[Stage], Option<&Stage>, &[Stage]) {
    match stages.iter().position(is_proxy) {
        Some(at) => (&stages[..at], Some(&stages[at]), &stages[at + 1..]),
        None => (stages, None, &[]),
    }
}

/// The part of the path between two places where TCP ends.
pub(crate) struct Section<'a> {
    /// The section's name in messages.
    pub(crate) name: &'static str,
    /// Stages towards the UE.
    pub(crate) down: &'a [Stage],
    /// Stages towards the server.
    pub(crate) up: &'a [Stage],
}

/// The two sections of the path, or the whole path unless there is a proxy in both directions.
pub(crate) fn sections<'a>(down: &'a [Stage], up: &'a [Stage]) -> Vec<Section<'a>> {
    match (split(down), split(up)) {
        ((from_server, Some(_), to_ue), (from_ue, Some(_), to_server)) => vec![
            Section {
                name: "the path between the server and the proxy",
                down: from_server,
                up: to_server,
            },
            Section { name: "the path between the proxy and the UE", down: to_ue, up: from_ue },
        ],
        _ => vec![Section { name: "the path", down, up }],
    }
}

/// True for a proxy.
pub(crate) fn is_proxy(stage: &Stage) -> bool {
    stage.fields.variant == Some(STAGE)
}
