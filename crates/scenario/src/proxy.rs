//! Where the TCP proxy stands in the two lists of stages.

use crate::document::Stage;
use crate::problem::Problems;

/// Its kind of stage.
pub(crate) const STAGE: &str = "proxy";

/// The stages before the proxy, the proxy, and those after it; all are "before" if there is none.
pub(crate) fn split(stages: &[Stage]) -> (&[Stage], Option<&Stage>, &[Stage]) {
    match stages.iter().position(is_proxy) {
        Some(at) => (&stages[..at], Some(&stages[at]), &stages[at + 1..]),
        None => (stages, None, &[]),
    }
}

/// What lies between two places where TCP ends.
pub(crate) struct Side<'a> {
    /// As messages call it.
    pub(crate) name: &'static str,
    /// Its stages towards the UE.
    pub(crate) down: &'a [Stage],
    /// Its stages towards the server.
    pub(crate) up: &'a [Stage],
}

/// Both sides of the proxy, or the path as a whole if there is none in both directions.
pub(crate) fn sides<'a>(down: &'a [Stage], up: &'a [Stage]) -> Vec<Side<'a>> {
    match (split(down), split(up)) {
        ((from_server, Some(_), to_ue), (from_ue, Some(_), to_server)) => vec![
            Side {
                name: "the path between the server and the proxy",
                down: from_server,
                up: to_server,
            },
            Side { name: "the path between the proxy and the UE", down: to_ue, up: from_ue },
        ],
        _ => vec![Side { name: "the path", down, up }],
    }
}

/// A proxy stands in both directions, once in each.
pub(crate) fn check(down: &[Stage], up: &[Stage], problems: &mut Problems) {
    let mut found = [("[[path.down]]", down), ("[[path.up]]", up)].map(|(header, stages)| {
        let mut proxies = stages.iter().filter(|stage| is_proxy(stage));
        let first = proxies.next();
        if let (Some(first), Some(second)) = (first, proxies.next()) {
            problems.add_with_help(
                second.fields.origin_of("stage"),
                format!("{header} has a second proxy; one is possible"),
                format!("the first one is at {}", first.fields.origin_of("stage")),
            );
        }
        (header, first)
    });
    found.sort_by_key(|(_, first)| first.is_none());
    if let [(here, Some(proxy)), (there, None)] = found {
        problems.add_with_help(
            proxy.fields.origin_of("stage"),
            format!("a proxy stands in both directions; {here} has one, {there} has none"),
            format!(
                "add stage = \"proxy\" to {there}: after what packets meet before they reach the \
                 proxy, before what they meet then"
            ),
        );
    }
}

fn is_proxy(stage: &Stage) -> bool {
    stage.fields.variant == Some(STAGE)
}
