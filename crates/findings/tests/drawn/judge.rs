//! Runs a drawn scenario and reports results that are impossible.

use std::collections::BTreeMap;

use airpath_base::{Direction, Duration, Instant, Rate};
use airpath_findings::{Budget, Question, explain};
use airpath_path::{ServiceConfig, StageConfig};
use airpath_record::{RunSummary, Tables};
use airpath_scenario::{Edit, FlowConfig, NamedStage, Parsed, Scenario, Source, Traffic, parse};
use airpath_sim::{Options, Passage, SeenAt, simulate_with};
use serde_json::Value;

/// Events after which a run is cut short: it ends at the time that it has reached.
const MOST_EVENTS: u64 = 1 << 16;

/// Figures from 0 to 1.
const FRACTIONS: &[&str] =
    &["bler", "padding", "awake", "jain_index", "confidence", "answered_share"];

/// Figures that may be negative: differences, logarithms, and what a breakdown subtracts.
const SIGNED: &[&str] = &["parts", "tried", "findings"];

/// What is checked besides the run itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Also {
    Nothing,
    /// Every packet, at both ends.
    Packets,
    /// The breakdown of where the time went.
    Breakdown,
    /// The explanation of what limits the run.
    Findings,
}

/// What is wrong with the run of a scenario file that `parse` accepts.
pub(crate) fn check(text: &str, also: Also) -> Result<(), String> {
    let source = Source { name: "drawn.toml", text, directory: None };
    let mut parsed = parse(&source, &[]).map_err(|error| error.to_string())?;
    let accounted = also == Also::Breakdown;
    let (summary, tables) = run(&mut parsed, accounted)?;
    figures(&serde_json::to_value(&summary).expect("it is plain"), "", false)?;
    finite(&format!("{summary:?}"))?;
    finite(&format!("{tables:?}"))?;
    rates(&parsed.scenario, &summary)?;
    delays(&parsed.scenario, &summary)?;
    breakdowns(&summary)?;
    match also {
        Also::Nothing | Also::Breakdown => Ok(()),
        Also::Packets => conservation(&parsed.scenario, &summary),
        Also::Findings => findings(&parsed, &summary),
    }
}

/// Runs the scenario to its end, or as far as the events reach: the scenario then ends there.
fn run(parsed: &mut Parsed, accounted: bool) -> Result<(RunSummary, Tables), String> {
    let scenario = &mut parsed.scenario;
    for _ in 0..2 {
        let mut reached = Instant::ZERO;
        let mut handled = 0;
        let options = Options { accounted, on_packet: None };
        let outcome = simulate_with(scenario, 1, options, &mut |now, events| {
            (reached, handled) = (now, events);
            events < MOST_EVENTS
        });
        if let Ok(outcome) = outcome {
            return Ok((outcome.summary, outcome.tables));
        }
        let least = Duration::from_nanos(1);
        let lasted = reached.saturating_since(Instant::ZERO);
        if lasted < least {
            return Err(format!("{handled} events at the first instant"));
        }
        // A sample at exactly that time would be reported once more.
        scenario.run.duration = lasted - least;
    }
    Err("the same run has more events than before".to_owned())
}

/// No fraction is above 1, and no figure below 0.
fn figures(value: &Value, name: &str, signed: bool) -> Result<(), String> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let most = if FRACTIONS.contains(&name) { 1.0 + 1e-9 } else { f64::INFINITY };
            let least = if signed { f64::NEG_INFINITY } else { 0.0 };
            match (least..=most).contains(&number) {
                true => Ok(()),
                false => Err(format!("{name} is {number}")),
            }
        }
        Value::Array(all) => all.iter().try_for_each(|one| figures(one, name, signed)),
        Value::Object(all) => all.iter().try_for_each(|(key, one)| {
            figures(one, key, signed || SIGNED.contains(&key.as_str()))
                .map_err(|fault| format!("{name}/{fault}"))
        }),
        _ => Ok(()),
    }
}

/// JSON would have null for a value that is not a number.
fn finite(debug: &str) -> Result<(), String> {
    let word = debug
        .split(|char: char| !(char.is_alphanumeric() || char == '_' || char == '"'))
        .find(|word| ["NaN", "inf"].contains(word));
    word.map_or(Ok(()), |word| Err(format!("a figure is {word}")))
}

/// Checks that nothing carries more than its capacity.
fn rates(scenario: &Scenario, summary: &RunSummary) -> Result<(), String> {
    for link in &summary.links {
        // The transmission time of a packet on an idle link is rounded down to whole nanoseconds:
        // for the smallest packet the error is this large.
        let rounding = link.capacity_mbps * 1e6 * 1e-9 / (28.0 * 8.0);
        let most = link.capacity_mbps * (1.0 + rounding + 1e-9);
        if link.throughput_mbps > most || link.utilisation > 1.0 + rounding + 1e-9 {
            let carried = link.throughput_mbps;
            return Err(format!("{} carried {carried} Mb/s of {most}", link.id));
        }
    }
    for config in &scenario.flows {
        let Some(flow) = summary.flows.iter().find(|flow| flow.id == config.id) else { continue };
        let stages = stages_of(scenario, config.direction);
        let slowest = stages.iter().filter_map(rate_of).min();
        if let (Some(slowest), Some(goodput)) = (slowest, flow.goodput_mbps)
            && goodput > slowest.bps() as f64 * 1e-6 * (1.0 + 1e-6)
        {
            return Err(format!("{} got {goodput} Mb/s of {}", flow.id, slowest.bps()));
        }
        let sent = flow.retransmitted_segments.unwrap_or(0).max(flow.packets_lost.unwrap_or(0));
        if sent > flow.segments_sent.max(flow.packets_sent.unwrap_or(0)) {
            return Err(format!("{} lost, or retransmitted, more than it sent", flow.id));
        }
        if let Traffic::File { size, .. } = config.traffic
            && flow.bytes_delivered > size
        {
            return Err(format!("{} delivered more than the file", flow.id));
        }
    }
    for ping in &summary.pings {
        if ping.lost > ping.sent {
            return Err(format!("{} lost more than it sent", ping.id));
        }
    }
    Ok(())
}

fn stages_of(scenario: &Scenario, direction: Direction) -> &[NamedStage] {
    match direction {
        Direction::Downlink => &scenario.down,
        Direction::Uplink => &scenario.up,
    }
}

fn rate_of(stage: &NamedStage) -> Option<Rate> {
    match &stage.stage {
        StageConfig::Link(link) => match link.service {
            ServiceConfig::Rate(rate) => Some(rate),
            _ => None,
        },
        _ => None,
    }
}

/// Checks that nothing is faster than the delays on its path.
fn delays(scenario: &Scenario, summary: &RunSummary) -> Result<(), String> {
    let least = |direction| -> f64 {
        let delay = |stage: &NamedStage| match &stage.stage {
            StageConfig::Delay(delay) => delay.base.as_millis_f64(),
            _ => 0.0,
        };
        stages_of(scenario, direction).iter().map(delay).sum()
    };
    let both = least(Direction::Downlink) + least(Direction::Uplink);
    // Linux's TCP clocks have a resolution of one microsecond, at both ends of what they measure.
    let judged = |id: &str, what: &str, found: Option<f64>, least: f64| match found {
        Some(found) if found < least - 2e-3 => {
            Err(format!("{what} of {id} is {found} ms at least, its path takes {least} ms"))
        }
        _ => Ok(()),
    };
    for ping in &summary.pings {
        judged(&ping.id, "RTT", ping.rtt_ms.as_ref().map(|rtt| rtt.min), both)?;
    }
    for flow in &summary.flows {
        let config = scenario.flows.iter().find(|config| config.id == flow.id);
        let Some(config) = config else { continue };
        let one_way = flow.delay_ms.as_ref().map(|delay| delay.min);
        judged(&flow.id, "delay", one_way, least(config.direction))?;
        // A proxy answers in place of the other end.
        if scenario.proxy.is_none() {
            // A round trip that is known only from timestamps has whole ticks.
            let tick = match &config.traffic {
                Traffic::Bulk { tcp, .. } | Traffic::File { tcp, .. } => {
                    tcp.sender.timestamp_tick.as_millis_f64()
                }
                Traffic::Ping { .. } | Traffic::Udp { .. } | Traffic::Quic { .. } => 0.0,
            };
            judged(&flow.id, "RTT", flow.rtt_ms.as_ref().map(|rtt| rtt.min), both - tick)?;
        }
    }
    Ok(())
}

/// Checks that parts do not exceed the whole, and add up to it.
fn breakdowns(summary: &RunSummary) -> Result<(), String> {
    let close = |one: f64, other: f64| (one - other).abs() <= 1e-6 * (1.0 + other.abs());
    for breakdown in &summary.breakdowns {
        for times in breakdown.rtt_ms.iter().chain(&breakdown.delay_ms) {
            let sum: f64 = times.parts.iter().map(|part| part.ms).sum();
            let outside =
                times.parts.iter().find(|part| !(-1e-9..=1.0 + 1e-9).contains(&part.share));
            if let Some(part) = outside {
                return Err(format!(
                    "{}: {} is {} of the time",
                    breakdown.id, part.part, part.share
                ));
            }
            if !close(sum, times.mean) {
                return Err(format!("{}: parts of {sum} ms, not {}", breakdown.id, times.mean));
            }
        }
        if let Some(goodput) = &breakdown.goodput_mbps {
            let sum: f64 = goodput.parts.iter().map(|part| part.mbps).sum();
            if !close(sum + goodput.goodput, goodput.capacity) {
                return Err(format!("{}: parts of {sum} Mb/s", breakdown.id));
            }
            let outside = goodput.parts.iter().find(|part| part.share > 1.0 + 1e-9);
            if let Some(part) = outside {
                return Err(format!("{}: {} is {} of all", breakdown.id, part.part, part.share));
            }
        }
    }
    Ok(())
}

/// Checks that everything sent has arrived, was lost, or is under way.
fn conservation(scenario: &Scenario, summary: &RunSummary) -> Result<(), String> {
    #[derive(Default)]
    struct Packets {
        sent: u64,
        arrived: u64,
    }
    let mut flows: BTreeMap<u32, Packets> = BTreeMap::new();
    let mut on_packet = |passage: &Passage| {
        let flow = flows.entry(passage.packet.flow.0).or_default();
        match (passage.place, passage.direction) {
            (SeenAt::Server, Direction::Downlink) | (SeenAt::Ue, Direction::Uplink) => {
                flow.sent += 1;
            }
            (SeenAt::Ue, Direction::Downlink) | (SeenAt::Server, Direction::Uplink) => {
                flow.arrived += 1;
            }
            (SeenAt::BaseStation, _) => {}
        }
    };
    let options = Options { on_packet: Some(&mut on_packet), ..Options::default() };
    let seen = simulate_with(scenario, 1, options, &mut |_, _| true);
    let again = seen.expect("not stopped").summary;
    if format!("{again:?}") != format!("{summary:?}") {
        return Err("a run that is watched is another one".to_owned());
    }
    let ends_at_proxy = |config: &FlowConfig| {
        scenario.proxy.is_some()
            && matches!(config.traffic, Traffic::Bulk { .. } | Traffic::File { .. })
    };
    for (index, config) in (0..).zip(&scenario.flows) {
        let Some(Packets { sent, arrived }) = flows.get(&index) else { continue };
        let drops = summary.drops.iter().filter(|drop| drop.flow == config.id);
        let lost: u64 = drops.map(|drop| drop.packets).sum();
        if !ends_at_proxy(config) && arrived + lost > *sent {
            let id = &config.id;
            return Err(format!("{id}: of {sent} packets {arrived} arrived and {lost} were lost"));
        }
    }
    Ok(())
}

/// Checks the explanation of the run.
fn findings(parsed: &Parsed, summary: &RunSummary) -> Result<(), String> {
    let end = Edit::new("run.duration_s", parsed.scenario.run.duration.as_secs_f64());
    // Cut short, some of its flows may never start.
    let Ok(parsed) = parsed.document.with(&[end]) else { return Ok(()) };
    let budget = Budget { changes: 4, seeds: 2, seeds_in_doubt: 2, advised: 1, events: 0, runs: 6 };
    let seeds = budget.seeds_of(1, 1);
    let (known, threads) = (std::slice::from_ref(summary), 1);
    let question = Question { parsed: &parsed, seeds: &seeds, known, budget, threads };
    let explanation = explain(&question, &mut |_| true).expect("not stopped");
    finite(&format!("{explanation:?}"))?;
    figures(&serde_json::to_value(&explanation).expect("it is plain"), "", true)
}
