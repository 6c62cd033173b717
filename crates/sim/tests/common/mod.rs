//! Runs a scenario given as TOML.

#![allow(dead_code, reason = "each test uses a part")]

use airpath_record::{FlowSummary, RunSummary};
use airpath_scenario::{Scenario, Source, parse};

pub(crate) fn run(text: &str, sets: &[&str]) -> RunSummary {
    let scenario = scenario(text, sets);
    airpath_sim::simulate(&scenario, scenario.run.seed, &mut |_| true).expect("not stopped").summary
}

pub(crate) fn scenario(text: &str, sets: &[&str]) -> Scenario {
    let source = Source { name: "test.toml", text, directory: None };
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    parse(&source, &sets).unwrap_or_else(|error| panic!("{error}")).scenario
}

pub(crate) fn flow(text: &str, sets: &[&str]) -> FlowSummary {
    run(text, sets).flows.remove(0)
}
