//! Runs a scenario given as TOML.

#![allow(dead_code, reason = "each test uses a part")]

use airpath_record::{FlowSummary, RunSummary};
use airpath_scenario::{Scenario, Source, parse};
use airpath_sim::Outcome;

pub(crate) fn run(text: &str, sets: &[&str]) -> RunSummary {
    let scenario = scenario(text, sets);
    outcome(&scenario, scenario.run.seed).summary
}

pub(crate) fn outcome(scenario: &Scenario, seed: u64) -> Outcome {
    airpath_sim::simulate(scenario, seed, &mut |_| true).expect("not stopped")
}

pub(crate) fn scenario(text: &str, sets: &[&str]) -> Scenario {
    let source = Source { name: "test.toml", text, directory: None };
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    parse(&source, &sets).unwrap_or_else(|error| panic!("{error} in {text}")).scenario
}

pub(crate) fn flow(text: &str, sets: &[&str]) -> FlowSummary {
    run(text, sets).flows.remove(0)
}

/// The text of a shipped scenario.
pub(crate) fn shipped(name: &str) -> &'static str {
    let found = airpath_scenario::shipped().iter().find(|(known, _)| *known == name);
    found.expect("it is shipped").1
}
