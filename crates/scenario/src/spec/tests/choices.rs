//! Tests that every value of every key with choices builds something different.

use std::path::Path;

use super::tables;
use crate::spec::{Choice, FLOW, Key, Kind, Table};
use crate::{Scenario, Source, parse};

/// Keys whose values are covered by other tests, and where.
const ELSEWHERE: &[(&str, &str)] = &[
    // These keys say how a drive log is read: tests/python/test_drive_log.py.
    ("radio.channel", "log_column"),
    ("radio.channel", "missing"),
    // A tunnel needs both ends: tests/core_network.rs.
    ("path", "end"),
];

/// What has to be set besides a key for its values to make a difference.
struct Setting {
    /// Prefix of the table's path.
    table: &'static str,
    key: &'static str,
    /// The value to which this applies; empty: every value.
    value: &'static str,
    sets: &'static [&'static str],
}

const fn with(
    table: &'static str,
    key: &'static str,
    value: &'static str,
    sets: &'static [&'static str],
) -> Setting {
    Setting { table, key, value, sets }
}

const SETTINGS: &[Setting] = &[
    with("flow", "kind", "file", &["flow.0.size_bytes=1000"]),
    with("flow", "kind", "udp", &["flow.0.rate_mbps=1"]),
    with("flow", "congestion", "cubic", &["flow.0.kind=quic"]),
    with("flow", "congestion", "new-reno", &["flow.0.kind=quic"]),
    with("", "congestion", "fixed", &["KEY.fixed_window_segments=9"]),
    with("", "reno.halves", "", &["KEY.congestion=reno"]),
    with("", "reno.grows_by", "", &["KEY.congestion=reno"]),
    with("", "reno.slow_start", "", &["flow.0.congestion=reno"]),
    with("path", "stage", "link", &["KEY={stage=\"link\", rate_mbps=1}"]),
    with("path", "stage", "trace", &["KEY={stage=\"trace\", file=\"builtin:sawtooth\"}"]),
    with("path", "stage", "delay", &["KEY={stage=\"delay\", delay_ms=7}"]),
    with("path", "stage", "batch", &["KEY={stage=\"batch\", interval_ms=7}"]),
    with("path", "stage", "loss", &["KEY={stage=\"loss\", probability=0.5}"]),
    with(
        "path",
        "stage",
        "gilbert-elliott",
        &["KEY={stage=\"gilbert-elliott\", good_to_bad=0.5, bad_to_good=0.5}"],
    ),
    with("path", "stage", "shaper", &["KEY={stage=\"shaper\", rate_mbps=1, burst_bytes=9000}"]),
    with("path", "stage", "policer", &["KEY={stage=\"policer\", rate_mbps=1, burst_bytes=9000}"]),
    with(
        "path",
        "stage",
        "gtpu",
        &["KEY={stage=\"gtpu\", end=\"enter\"}", "path.down.1={stage=\"gtpu\", end=\"leave\"}"],
    ),
    with(
        "path",
        "stage",
        "vpn",
        &["KEY={stage=\"vpn\", end=\"enter\"}", "path.down.1={stage=\"vpn\", end=\"leave\"}"],
    ),
    with("path", "stage", "offload", &["KEY={stage=\"offload\", fault=\"checksum\"}"]),
    with("path", "fault", "", &["KEY={stage=\"offload\"}"]),
    with("path", "stage", "mtu", &["KEY={stage=\"mtu\", mtu_bytes=1500}"]),
    with("path", "stage", "nat", &["KEY={stage=\"nat\"}", "path.up.0={stage=\"nat\"}"]),
    with(
        "path",
        "stage",
        "firewall",
        &["KEY={stage=\"firewall\"}", "path.up.0={stage=\"firewall\"}"],
    ),
    with("path", "stage", "host", &["KEY={stage=\"host\", processing_ms=1}"]),
    with("path", "stage", "modem", &["KEY={stage=\"modem\"}"]),
    with("path", "stage", "server", &["KEY={stage=\"server\", place=\"edge\"}"]),
    with("path", "stage", "proxy", PROXIES),
    with("path", "aqm", "", &["KEY={stage=\"link\", rate_mbps=1}"]),
    with("path", "jitter_distribution", "", &["KEY.jitter_ms=3"]),
    with("path", "excess", "", &["KEY={stage=\"policer\", rate_mbps=1, burst_bytes=9000}"]),
    with("path", "outer_ip", "", TUNNEL),
    with("path", "too_big", "", TUNNEL),
    with("path", "stalls", "", &["KEY={stage=\"host\", stall_ms=3}"]),
    with("path", "stalls", "never", &["KEY={stage=\"host\"}"]),
    with("path", "stalls", "at-intervals", &["KEY.stall_period_ms=9"]),
    with("path", "stalls", "at-random", &["KEY.stall_mean_between_ms=9"]),
    with(
        "path",
        "stall_distribution",
        "",
        &["KEY={stage=\"host\", stalls=\"at-random\", stall_ms=3, stall_mean_between_ms=9}"],
    ),
    with("path", "place", "", &["KEY={stage=\"server\"}"]),
    with("flow.N", "buffer.from_first_hop", "ue", FIRST_HOP),
    with("flow.N", "buffer.from_first_hop", "both", FIRST_HOP),
    with("radio.cell", "access", "nr", &["radio.preset=nr-n78"]),
    with("radio.cell", "access", "lte", &["radio.preset=lte-20"]),
    with("radio.cell", "access", "umts", &["radio.preset=umts-hspa"]),
    with("radio.cell", "access", "evdo", &["radio.preset=evdo-rev-a"]),
    with("radio.cell", "duplex", "", &["radio.preset=nr-fdd-20"]),
    with("radio.cell", "duplex", "tdd", &["radio.cell.tdd_pattern=\"DDDSU 10:2:2\""]),
    with("radio.cell", "frequency_range", "", &["radio.preset=nr-mmwave", "radio.cell.scs_khz=60"]),
    with("radio.cell", "downlink", "", &["radio.preset=umts-hspa"]),
    with("radio.cell", "uplink", "", &["radio.preset=umts-hspa"]),
    with("radio.channel", "model", "trace", &["radio.channel.file=channel.csv"]),
    with("radio.channel", "at_end", "", &["radio.channel.file=channel.csv"]),
    with("radio.channel", "path_loss", "", &["radio.channel.model=process"]),
    with("radio.channel", "fading", "", &["radio.channel.model=process"]),
    with("radio.host_link", "aqm", "", &["KEY.rate_mbps=3"]),
    with("radio.rrc", "initial_state", "", &["radio.preset=umts-hspa", "radio.rrc.pch=true"]),
    with("radio.rrc", "setup_state", "", &["radio.preset=umts-hspa"]),
];

const FIRST_HOP: &[&str] = &["KEY.buffer.first_hop_rtt_ms=4000", "KEY.buffer.first_hop_mbps=100"];
const PROXIES: &[&str] = &["KEY={stage=\"proxy\"}", "path.up.0={stage=\"proxy\"}"];
const TUNNEL: &[&str] = &[
    "KEY={stage=\"gtpu\", end=\"enter\", mtu_bytes=1400}",
    "path.down.1={stage=\"gtpu\", end=\"leave\"}",
];

const WIRE: &str = "
[[path.down]]
stage = \"delay\"
delay_ms = 1
[[path.down]]
stage = \"delay\"
delay_ms = 1
[[path.down]]
stage = \"link\"
rate_mbps = 3
[[path.up]]
stage = \"delay\"
delay_ms = 1
[[path.up]]
stage = \"link\"
rate_mbps = 3
[[flow]]
kind = \"bulk\"
";

fn build(table: &Table, key: &Key, value: &str, choices: &[Choice]) -> Result<Scenario, String> {
    let mut text = WIRE.to_owned();
    let at = match table.path {
        "flow.N" => "flow.0",
        "profile.NAME" => {
            text.push_str("profile = \"mine\"\n[profile.mine]\n");
            "profile.mine"
        }
        "program.N" => {
            text.push_str("[[program]]\ncommand = \"true\"\n");
            "program.0"
        }
        path if path.starts_with("path.") => "path.down.0",
        "emulation" => "emulation",
        path => {
            text.push_str("[radio]\npreset = \"nr-n78\"\n");
            if ["radio.mobility", "radio.split"].contains(&path) {
                text.push_str("[[radio.neighbour]]\n");
            }
            path.split(" or ").next().unwrap()
        }
    };
    let mut sets: Vec<String> = Vec::new();
    if at == "path.down.0" && FLOW.find(key.name, Some("bulk")).is_some() {
        sets.extend(PROXIES.iter().map(|set| set.replace("KEY", at)));
    }
    // LTE's MCS table has two values, NR's has three.
    if key.name == "mcs_table_down" && choices.len() == 2 {
        sets.push("radio.preset=lte-20".to_owned());
    }
    let besides = |value| {
        SETTINGS.iter().filter(move |setting| {
            table.path.starts_with(setting.table)
                && setting.key == key.name
                && setting.value == value
        })
    };
    let besides = besides("").chain(besides(value)).flat_map(|setting| setting.sets);
    sets.extend(besides.map(|set| set.replace("KEY", at)));
    sets.push(format!("{at}.{}=\"{value}\"", key.name));
    let source = Source { name: "s.toml", text: &text, directory: Some(Path::new("tests/data")) };
    let parsed = parse(&source, &sets);
    parsed.map(|parsed| parsed.scenario).map_err(|error| format!("{sets:?}: {error}"))
}

#[test]
fn every_choice_builds_something_else() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for table in tables() {
        for key in table.keys(None) {
            let Kind::Choice(choices) = key.kind else { continue };
            let here =
                |(path, name): &(&str, &str)| table.path.starts_with(path) && *name == key.name;
            if ELSEWHERE.iter().any(here) {
                continue;
            }
            let mut built: Vec<(&str, Scenario)> = Vec::new();
            for choice in choices {
                match build(table, key, choice.value, choices) {
                    Err(error) => wrong.push(format!("{} {}: {error}", table.path, key.name)),
                    Ok(scenario) => {
                        let same = built.iter().find(|(_, other)| *other == scenario);
                        if let Some((other, _)) = same {
                            wrong.push(format!(
                                "{} {}: {:?} builds what {other:?} builds",
                                table.path, key.name, choice.value
                            ));
                        }
                        built.push((choice.value, scenario));
                        seen += 1;
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 120, "{seen}");
}
