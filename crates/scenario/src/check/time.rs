//! A path takes time.

use airpath_base::Duration;

use crate::flow::is_tcp;
use crate::problem::Problems;
use crate::proxy;
use crate::read::Fields;
use crate::spec::{Chosen, StageKind};
use crate::stage::Stage;

/// TCP over a path that takes no time would send everything, without end, at its first instant; so
/// would one end and a proxy, up to their buffers.
pub(crate) fn check(
    down: &[Stage],
    up: &[Stage],
    radio: bool,
    flows: &[Fields],
    problems: &mut Problems,
) {
    let Some(tcp) = flows.iter().find(|flow| flow.variant.is_some_and(is_tcp)) else { return };
    let sections = proxy::sections(down, up);
    // The radio takes time; it is at the UE's end.
    let wired = if radio { sections.len() - 1 } else { sections.len() };
    for section in &sections[..wired] {
        if !section.down.iter().chain(section.up).any(takes_time) {
            problems.add_with_help(
                tcp.origin_of("kind"),
                format!(
                    "{} takes no time, so that flow {:?} would send all it has at one instant",
                    section.name,
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
    match stage.fields.variant.and_then(StageKind::of) {
        Some(StageKind::Delay) => any(["delay_ms", "jitter_ms"]),
        Some(StageKind::Host) => any(["processing_ms", "coalescing_ms"]),
        Some(
            StageKind::Loss
            | StageKind::GilbertElliott
            | StageKind::Policer
            | StageKind::Gtpu
            | StageKind::Mtu
            | StageKind::Nat
            | StageKind::Firewall,
        ) => false,
        Some(
            StageKind::Link
            | StageKind::Trace
            | StageKind::Shaper
            | StageKind::Batch
            | StageKind::Server
            | StageKind::Proxy,
        ) => true,
        // The stage was refused for another reason.
        None => true,
    }
}
