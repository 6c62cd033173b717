//! The virtual clock: runs a scenario with our own TCP endpoints, as fast as the machine can.
//!
//! A run is a pure function of scenario and seed.

mod agenda;
mod flow;
mod world;

use airpath_base::Instant;
use airpath_record::{RunSummary, Tables};
use airpath_scenario::Scenario;

/// What a run leaves behind.
#[derive(Debug)]
pub struct Outcome {
    /// The whole run in one document.
    pub summary: RunSummary,
    /// Its tables.
    pub tables: Tables,
}

/// `progress` asked for the run to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped;

/// Runs `scenario` with `seed`. `progress` is told the simulated time at every sample interval and
/// every few hundredths of a second of work, and stops the run by returning false.
pub fn simulate(
    scenario: &Scenario,
    seed: u64,
    progress: &mut dyn FnMut(Instant) -> bool,
) -> Result<Outcome, Stopped> {
    let mut world = world::World::new(scenario, seed);
    if !world.run(progress) {
        return Err(Stopped);
    }
    let (summary, tables) = world.finish();
    Ok(Outcome { summary, tables })
}
