//! Stages that belong together: the ends of a tunnel, the two sides of a NAT or a firewall.

use airpath_base::Duration;

use crate::document::Stage;
use crate::problem::Problems;
use crate::proxy::{self, Side};
use crate::value::Setting;

/// True for the direction in which packets leave the inside of NATs and firewalls.
pub(crate) fn is_outward(direction: &str) -> bool {
    direction == "up"
}

/// True for a NAT or a firewall.
fn is_gate(stage: &Stage) -> bool {
    matches!(stage.fields.variant, Some("nat" | "firewall"))
}

/// Fills in what the outward side of a gate has by default; its keys stand nowhere else.
pub(crate) fn complete_gate(stage: &mut Stage, direction: &str, problems: &mut Problems) {
    if !is_gate(stage) {
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
                "give it to the same stage in [[path.up]]: packets up make the binding",
            );
        }
    }
}

/// Tunnels begin and end in one direction, one after another; a proxy stands in none.
pub(crate) fn check_tunnels(stages: &[Stage], direction: &str, problems: &mut Problems) {
    let (before, proxy, after) = proxy::split(stages);
    check_hop_tunnels(
        before,
        ["", proxy.map_or("", |_| ", before the proxy")],
        direction,
        problems,
    );
    check_hop_tunnels(after, [", after the proxy", ""], direction, problems);
}

/// Those of the stages up to a proxy or the end; `bounds` says what limits them at either end.
fn check_hop_tunnels(
    stages: &[Stage],
    bounds: [&str; 2],
    direction: &str,
    problems: &mut Problems,
) {
    let [begin, end] = bounds;
    let mut open: Option<&Stage> = None;
    for stage in stages {
        let origin = stage.fields.origin_of("end");
        match (stage.fields.text("end"), open) {
            (Some("enter"), None) => open = Some(stage),
            (Some("enter"), Some(_)) => {
                problems.add(origin, "the packets are in a tunnel already; only one is modelled");
            }
            (Some("leave"), Some(_)) => open = None,
            (Some("leave"), None) => {
                problems.add_with_help(
                    origin,
                    "the packets are in no tunnel that they could leave",
                    format!(
                        "put stage = \"gtpu\" with end = \"enter\" before it in \
                         [[path.{direction}]]{begin}"
                    ),
                );
            }
            _ => {}
        }
    }
    if let Some(stage) = open {
        problems.add_with_help(
            stage.fields.origin_of("end"),
            "the packets never leave this tunnel",
            format!(
                "put stage = \"gtpu\" with end = \"leave\" after it in [[path.{direction}]]{end}"
            ),
        );
    }
}

/// What packets meet last on the way up, they meet first on the way down; on each side of a proxy.
pub(crate) fn check_gates(down: &[Stage], up: &[Stage], problems: &mut Problems) {
    let sides = proxy::sides(down, up);
    let (of_side, help) = match sides.len() {
        1 => ("", "NATs and firewalls stand once in each direction, in the reverse order"),
        _ => (
            " on this side of the proxy",
            "NATs and firewalls stand once in each direction, in the reverse order: before the \
             proxy in one, after it in the other",
        ),
    };
    for side in &sides {
        check_side_gates(side, of_side, help, problems);
    }
}

fn check_side_gates(side: &Side<'_>, of_side: &str, help: &str, problems: &mut Problems) {
    let mut inward = side.down.iter().filter(|stage| is_gate(stage));
    let mut outward = side.up.iter().rev().filter(|stage| is_gate(stage));
    loop {
        let (stage, here, there) = match (inward.next(), outward.next()) {
            (Some(one), Some(other)) if one.fields.variant == other.fields.variant => continue,
            (Some(one), _) => (one, "down", "up"),
            (None, Some(other)) => (other, "up", "down"),
            (None, None) => return,
        };
        problems.add_with_help(
            stage.fields.origin_of("stage"),
            format!(
                "this {} of [[path.{here}]] has no counterpart in [[path.{there}]]{of_side}",
                stage.fields.variant.unwrap_or_default()
            ),
            help,
        );
        return;
    }
}

/// A CPU that is hardly ever there would take for ever.
pub(crate) fn check_stalls(stages: &[Stage], problems: &mut Problems) {
    for stage in stages {
        let (length, period) =
            (stage.fields.time("stall_ms"), stage.fields.time("stall_period_ms"));
        if let (Some(length), Some(period)) = (length, period)
            && length + period / 100 > period
        {
            problems.add_with_help(
                stage.fields.origin_of("stall_ms"),
                "a stall leaves less than a hundredth of the time until the next",
                format!("`stall_period_ms` is {}", period.as_millis_f64()),
            );
        }
    }
}
