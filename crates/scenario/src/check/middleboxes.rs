//! Checks that each NAT and each firewall appears once in each direction.

use airpath_base::{Direction, Duration};

use crate::problem::Problems;
use crate::proxy::{self, Section};
use crate::spec::StageKind;
use crate::stage::{Stage, is_outward};
use crate::value::Setting;

/// True for a NAT or a firewall.
fn is_middlebox(stage: &Stage) -> bool {
    matches!(stage.fields.selected(), Some(StageKind::Nat | StageKind::Firewall))
}

/// Fills in the defaults of the outward direction of a middlebox, the only one that has these keys.
pub(crate) fn complete(stage: &mut Stage, direction: Direction, problems: &mut Problems) {
    if !is_middlebox(stage) {
        return;
    }
    let fields = &mut stage.fields;
    let defaults = [
        ("timeout_s", Setting::Time(Duration::from_secs(300))),
        ("inward_refreshes", Setting::Flag(true)),
    ];
    for (key, default) in defaults {
        if is_outward(direction) {
            if fields.setting(key).is_none() {
                fields.fill(key, default, None);
            }
        } else if let Some(origin) = fields.given(key) {
            problems.add_with_help(
                origin,
                format!("`{key}` does not belong in [[path.{direction}]]"),
                "set it on the same stage in [[path.up]]: uplink packets create the binding",
            );
        }
    }
}

/// Checks that the middleboxes of the two directions mirror each other, on each side of a proxy:
/// the last that uplink packets meet is the first that downlink packets meet.
pub(crate) fn check(down: &[Stage], up: &[Stage], problems: &mut Problems) {
    let sections = proxy::sections(down, up);
    let (of_section, help) = match sections.len() {
        1 => ("", "NATs and firewalls must be in both directions, in reverse order"),
        _ => (
            " on this side of the proxy",
            "NATs and firewalls must be in both directions, in reverse order: before the proxy in \
             one, after it in the other",
        ),
    };
    for section in &sections {
        check_section(section, of_section, help, problems);
    }
}

fn check_section(section: &Section<'_>, of_section: &str, help: &str, problems: &mut Problems) {
    let mut inward = section.down.iter().filter(|stage| is_middlebox(stage));
    let mut outward = section.up.iter().rev().filter(|stage| is_middlebox(stage));
    loop {
        let (stage, here) = match (inward.next(), outward.next()) {
            (Some(one), Some(other)) if one.fields.variant == other.fields.variant => continue,
            (Some(one), _) => (one, Direction::Downlink),
            (None, Some(other)) => (other, Direction::Uplink),
            (None, None) => return,
        };
        let there = here.reverse();
        problems.add_with_help(
            stage.fields.origin_of("stage"),
            format!(
                "this {} of [[path.{here}]] has no counterpart in [[path.{there}]]{of_section}",
                stage.fields.variant.unwrap_or_default()
            ),
            help,
        );
        return;
    }
}
