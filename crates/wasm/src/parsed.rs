//! Scenarios as documents.

use airpath_scenario::{Origin, Parsed, Problem, ScenarioError};
use serde_json::{Value, json};

use crate::request::Given;

/// The shipped scenarios, in the suggested order of reading.
pub(crate) fn shipped() -> Value {
    let all = airpath_scenario::shipped().iter();
    all.map(|(name, text)| {
        let title = tables(text)["title"].clone();
        json!({ "name": name, "title": title, "text": text })
    })
    .collect()
}

/// A scenario as a document: `values` has every key that has a value, `given` those in its text.
pub(crate) fn described(given: &Given, parsed: &Parsed) -> Value {
    let scenario = &parsed.scenario;
    let flows: Vec<Value> = scenario
        .flows
        .iter()
        .map(|flow| {
            json!({
                "index": flow.index,
                "id": flow.id,
                "kind": flow.traffic.kind(),
                "direction": flow.direction.name(),
                "congestion": flow.traffic.congestion(),
            })
        })
        .collect();
    json!({
        "name": scenario.name,
        "title": scenario.title,
        "seed": scenario.run.seed,
        "duration_s": scenario.run.duration.as_secs_f64(),
        "sha256": parsed.sha256,
        "resolved_toml": parsed.resolved_toml,
        "values": tables(&parsed.resolved_toml),
        "given": tables(&given.text),
        "flows": flows,
        "ues": scenario.radio.as_ref().map(|radio| radio.ues.clone()),
        "programs": scenario.programs.iter().map(|program| &program.name).collect::<Vec<_>>(),
    })
}

/// Why a scenario cannot be run: each problem with its place, and all of them as the command line
/// prints them.
pub(crate) fn refused(error: &ScenarioError) -> Value {
    let problems: Vec<Value> = error.problems.iter().map(problem).collect();
    json!({ "problems": problems, "text": error.to_string() })
}

fn problem(problem: &Problem) -> Value {
    let (line, column, set) = match &problem.origin {
        Origin::File { line, column, .. } => (Some(line), Some(column), None),
        Origin::Set { text, .. } => (None, None, Some(&**text)),
    };
    json!({
        "line": line,
        "column": column,
        "set": set,
        "message": problem.message,
        "help": problem.help,
        "allowed": problem.allowed,
    })
}

/// A TOML text, parsed before, as JSON.
fn tables(text: &str) -> Value {
    toml::from_str(text).unwrap_or_default()
}
