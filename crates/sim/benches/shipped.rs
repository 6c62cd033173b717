//! Shipped scenarios that train a profile-guided build (`tools/setup profiled`).
//!
//! `cargo bench -p airpath-sim --bench shipped -- bufferbloat flow.0.congestion=bbr` simulates one,
//! with keys overridden, and prints the number of events.

#![allow(clippy::print_stdout, reason = "a command line program")]

use airpath_scenario::{Source, parse, shipped};

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let name = words.next().unwrap_or_default();
    let found = shipped().iter().find(|(known, _)| *known == name);
    let (name, text) = found.unwrap_or_else(|| panic!("no scenario is named {name:?}"));
    let source = Source { name, text, directory: None };
    let sets: Vec<String> = words.collect();
    let scenario = parse(&source, &sets).unwrap_or_else(|error| panic!("{error}")).scenario;
    let outcome = airpath_sim::simulate(&scenario, 1, &mut |_| true).expect("never stopped");
    println!("{}", outcome.summary.events);
}
