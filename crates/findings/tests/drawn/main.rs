//! Scenarios drawn from the JSON schema: each runs to its end, and none of its figures is
//! impossible.
//!
//! `PROPTEST_RNG_SEED` decides what is drawn, `SCENARIOS` how many: `make fuzz-scenarios`.
#![allow(clippy::disallowed_methods, clippy::print_stderr)]

mod draw;
mod judge;

use std::panic::{AssertUnwindSafe, catch_unwind};

use airpath_scenario::json_schema;
use airpath_testing::in_parallel;

use draw::{Drawer, refused, without};
use judge::{Also, check};

/// Number of scenarios in an ordinary run.
const COUNT: u64 = 500;

#[test]
fn drawn_scenarios_end_with_possible_figures() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (seed, count) =
        (number("PROPTEST_RNG_SEED").unwrap_or(1), number("SCENARIOS").unwrap_or(COUNT));
    let schema = json_schema();
    let outcomes = in_parallel(count as usize, |number| {
        let number = number as u64;
        let text = Drawer::new(&schema, seed, number).draw()?;
        let also = match number % 50 {
            0 => Also::Findings,
            1..10 => Also::Packets,
            10..20 => Also::Breakdown,
            _ => Also::Nothing,
        };
        Some(fault(&text, also).map(|fault| {
            let (least, fault) = shrunk(text, also, fault);
            format!("{fault} ({also:?}), scenario {number}:\n{least}")
        }))
    });
    let drawn = outcomes.iter().flatten().count() as u64;
    let faults: Vec<_> = outcomes.into_iter().flatten().flatten().collect();
    assert!(faults.is_empty(), "PROPTEST_RNG_SEED={seed}\n{}", faults.join("\n"));
    assert!(drawn * 10 >= count * 8, "of {count} files only {drawn} could be repaired");
}

/// What is wrong with a run, or the message with which it panicked.
fn fault(text: &str, also: Also) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(|| check(text, also))) {
        Ok(checked) => checked.err(),
        Err(panic) => Some(format!("panicked: {}", airpath_testing::first_line(panic.as_ref()))),
    }
}

/// Reduces the file to as few lines as still show a fault of that kind.
fn shrunk(mut text: String, also: Also, mut fault_seen: String) -> (String, String) {
    let kind = |fault: &str| fault.split(' ').next().map(str::to_owned);
    loop {
        let lines = text.lines().count();
        let smaller = (0..lines).rev().find_map(|line| {
            let smaller = without(&text, &[line]);
            if smaller.len() == text.len() || !refused(&smaller).is_empty() {
                return None;
            }
            let fault = fault(&smaller, also)?;
            (kind(&fault) == kind(&fault_seen)).then_some((smaller, fault))
        });
        match smaller {
            Some((smaller, fault)) => (text, fault_seen) = (smaller, fault),
            None => return (text, fault_seen),
        }
    }
}
