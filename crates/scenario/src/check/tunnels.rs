//! GTP-U tunnels: each has two ends.

use airpath_base::Direction;

use crate::problem::Problems;
use crate::proxy;
use crate::spec::{Chosen, TunnelSide};
use crate::stage::Stage;

/// Tunnels begin and end in one direction, one after another; a proxy stands in none.
pub(crate) fn check(stages: &[Stage], direction: Direction, problems: &mut Problems) {
    let (before, proxy, after) = proxy::split(stages);
    check_hop(before, ["", proxy.map_or("", |_| ", before the proxy")], direction, problems);
    check_hop(after, [", after the proxy", ""], direction, problems);
}

/// Those of the stages up to a proxy or the end; `bounds` says what limits them at either end.
fn check_hop(stages: &[Stage], bounds: [&str; 2], direction: Direction, problems: &mut Problems) {
    let [begin, end] = bounds;
    let mut open: Option<&Stage> = None;
    for stage in stages {
        let origin = stage.fields.origin_of(TunnelSide::KEY);
        match (stage.fields.chosen(), open) {
            (Some(TunnelSide::Enter), None) => open = Some(stage),
            (Some(TunnelSide::Enter), Some(_)) => {
                problems.add(origin, "the packets are already in a tunnel; only one is modelled");
            }
            (Some(TunnelSide::Leave), Some(_)) => open = None,
            (Some(TunnelSide::Leave), None) => {
                problems.add_with_help(
                    origin,
                    "the packets are not in a tunnel here",
                    format!(
                        "put stage = \"gtpu\" with end = \"enter\" before it in \
                         [[path.{direction}]]{begin}"
                    ),
                );
            }
            (None, _) => {}
        }
    }
    if let Some(stage) = open {
        problems.add_with_help(
            stage.fields.origin_of(TunnelSide::KEY),
            "the packets never leave this tunnel",
            format!(
                "put stage = \"gtpu\" with end = \"leave\" after it in [[path.{direction}]]{end}"
            ),
        );
    }
}
