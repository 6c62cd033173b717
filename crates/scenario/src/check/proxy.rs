//! Checks that a TCP proxy appears in both directions.

use crate::problem::Problems;
use crate::proxy::is_proxy;
use crate::stage::Stage;

/// Reports a proxy that does not appear exactly once in each direction.
pub(crate) fn check(down: &[Stage], up: &[Stage], problems: &mut Problems) {
    let mut found = [("[[path.down]]", down), ("[[path.up]]", up)].map(|(header, stages)| {
        let mut proxies = stages.iter().filter(|stage| is_proxy(stage));
        let first = proxies.next();
        if let (Some(first), Some(second)) = (first, proxies.next()) {
            problems.add_with_help(
                second.fields.origin_of("stage"),
                format!("{header} has a second proxy; at most one is allowed"),
                format!("the first one is at {}", first.fields.origin_of("stage")),
            );
        }
        (header, first)
    });
    found.sort_by_key(|(_, first)| first.is_none());
    if let [(here, Some(proxy)), (there, None)] = found {
        problems.add_with_help(
            proxy.fields.origin_of("stage"),
            format!("a proxy must be in both directions; {here} has one, {there} has none"),
            format!(
                "add stage = \"proxy\" to {there}, after the stages that packets pass before the proxy"
            ),
        );
    }
}
