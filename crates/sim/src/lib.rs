//! The virtual clock: it runs a scenario with airpath's own TCP endpoints, as fast as the machine can.
//!
//! [`simulate`] is all that other crates see. Behind it, a loop takes the earliest event: a packet
//! leaves the network, a flow's timer expires, a sample is due. Flows have TCP endpoints, a proxy has
//! two more, and all of them write rows into the tables.
//!
//! A run is a pure function of scenario and seed.
//!
//! It may use: `base`, `tcp`, `record`, `metrics`, `scenario`, `network`. Start reading at
//! `world.rs`.

mod event_queue;
mod flow;
mod goodput;
mod world;

use airpath_base::Instant;
use airpath_record::{RunSummary, Tables};
use airpath_scenario::Scenario;

/// What a run leaves behind.
#[derive(Debug)]
pub struct Outcome {
    /// The whole run in one document.
    pub summary: RunSummary,
    /// The rows of every result table.
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
    run(world::World::new(scenario, seed, false), scenario, progress)
}

/// Like [`simulate`], and says besides where the time of each flow went
/// ([`RunSummary::breakdowns`]). Nothing else changes, but it takes longer.
pub fn simulate_accounted(
    scenario: &Scenario,
    seed: u64,
    progress: &mut dyn FnMut(Instant) -> bool,
) -> Result<Outcome, Stopped> {
    run(world::World::new(scenario, seed, true), scenario, progress)
}

fn run(
    mut world: world::World,
    scenario: &Scenario,
    progress: &mut dyn FnMut(Instant) -> bool,
) -> Result<Outcome, Stopped> {
    if !world.run(progress) {
        return Err(Stopped);
    }
    let (mut summary, mut tables) = world.finish();
    airpath_network::summarise_groups(scenario, &mut summary, &mut tables);
    Ok(Outcome { summary, tables })
}
