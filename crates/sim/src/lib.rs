//! The virtual clock: it runs a scenario with airpath's own TCP endpoints, as fast as the machine can.
//!
//! [`simulate`] is the entry point for other crates. Behind it, a loop takes the earliest event: a
//! packet leaves the network, a flow's timer expires, a sample is due. Flows have TCP endpoints, a
//! proxy has two more, and all of them write rows into the tables.
//!
//! A run is a pure function of scenario and seed.
//!
//! It may use: `base`, `tcp`, `quic`, `record`, `metrics`, `scenario`, `network`. Start reading at
//! `world.rs`.

mod event_queue;
mod flow;
mod goodput;
mod observers;
mod stopped;
mod support;
mod world;

pub use observers::{Options, Passage, SeenAt};
pub use stopped::Stopped;
pub use support::{WITHOUT_QUIC, runs_here};

use airpath_base::Instant;
use airpath_record::{RunSummary, Tables};
use airpath_scenario::Scenario;

/// The results of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The whole run in one document.
    pub summary: RunSummary,
    /// The rows of every result table.
    pub tables: Tables,
}

/// Runs `scenario` with `seed`. `progress` receives the simulated time at every sample interval and
/// every few hundredths of a second of work, and stops the run by returning false.
///
/// # Panics
///
/// If [`runs_here`] refuses the scenario.
pub fn simulate(
    scenario: &Scenario,
    seed: u64,
    progress: &mut dyn FnMut(Instant) -> bool,
) -> Result<Outcome, Stopped> {
    simulate_with(scenario, seed, Options::default(), &mut |now, _| progress(now))
}

/// Simulates a scenario and records what `options` ask for. `progress` also receives the number of
/// events so far, from which a caller can estimate how long the rest of the run will take.
///
/// ```
/// use airpath_scenario::{Source, parse};
/// use airpath_sim::Options;
/// use airpath_sim::SeenAt::{Server, Ue};
///
/// let text = "[[path.down]]\nstage = \"delay\"\ndelay_ms = 10\n[[flow]]\nkind = \"ping\"\ncount = 1\n\
///             direction = \"down\"\n";
/// let scenario = parse(&Source { name: "ping.toml", text, directory: None }, &[])?.scenario;
/// let mut seen = Vec::new();
/// let mut on_packet = |passage: &airpath_sim::Passage| {
///     seen.push((passage.at.as_nanos() / 1_000_000, passage.place));
/// };
/// let options = Options { on_packet: Some(&mut on_packet), ..Options::default() };
/// let run = airpath_sim::simulate_with(&scenario, 1, options, &mut |_, _| true);
/// assert!(run.is_ok());
/// assert_eq!(seen, [(0, Server), (10, Ue), (10, Ue), (10, Server)]);
/// # Ok::<(), airpath_scenario::ScenarioError>(())
/// ```
pub fn simulate_with(
    scenario: &Scenario,
    seed: u64,
    options: Options<'_>,
    progress: &mut dyn FnMut(Instant, u64) -> bool,
) -> Result<Outcome, Stopped> {
    let mut world = world::World::new(scenario, seed, options);
    world.run(progress)?;
    let (mut summary, mut tables) = world.finish();
    airpath_network::summarise_groups(scenario, &mut summary, &mut tables);
    Ok(Outcome { summary, tables })
}
