//! Checks that each tunnel has two ends.

use airpath_base::Direction;

use crate::get::Get;
use crate::problem::Problems;
use crate::proxy;
use crate::spec::{Chosen, TunnelSide};
use crate::stage::Stage;

/// Reports tunnels that do not begin and end in the same direction, that overlap, or that contain a
/// proxy.
pub(crate) fn check(stages: &[Stage], direction: Direction, problems: &mut Problems) {
    let (before, proxy, after) = proxy::split(stages);
    check_hop(before, ["", proxy.map_or("", |_| ", before the proxy")], direction, problems);
    check_hop(after, [", after the proxy", ""], direction, problems);
}

/// Checks the tunnels of one section, which ends at a proxy or at the end of the path; `bounds`
/// says what lies at either end of it.
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
            (Some(TunnelSide::Leave), Some(entered)) if kind(entered) != kind(stage) => {
                let (is, not) = (kind(entered), kind(stage));
                problems.add(
                    origin,
                    format!(
                        "the packets are in a tunnel of stage = \"{is}\" here, which stage = \
                         \"{not}\" cannot end"
                    ),
                );
                open = None;
            }
            (Some(TunnelSide::Leave), Some(_)) => open = None,
            (Some(TunnelSide::Leave), None) => {
                let kind = kind(stage);
                problems.add_with_help(
                    origin,
                    "the packets are not in a tunnel here",
                    format!(
                        "put stage = \"{kind}\" with end = \"enter\" before it in \
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
                "put stage = \"{}\" with end = \"leave\" after it in [[path.{direction}]]{end}",
                kind(stage)
            ),
        );
    }
}

/// The kind of a stage, as it is written in the file.
fn kind(stage: &Stage) -> &'static str {
    Get(&stage.fields).variant()
}
