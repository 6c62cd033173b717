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

use crate::world::{Advance, World};

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
    let mut world = World::new(scenario, seed, options);
    world.run(progress)?;
    Ok(outcome(world, scenario))
}

/// A run that pauses whenever a congestion control from outside is to decide
/// ([`CongestionControl::decision_due`](airpath_tcp::CongestionControl::decision_due)). What it
/// decides then is what it would have decided in [`simulate`], so the results are the same.
pub struct SteppedRun {
    world: World<'static>,
    scenario: Scenario,
}

impl SteppedRun {
    /// A run at its beginning.
    pub fn new(scenario: Scenario, seed: u64) -> Self {
        Self { world: World::new(&scenario, seed, Options::default()), scenario }
    }

    /// Lets the congestion controls decide for which the run had paused, and runs until the next
    /// decision. Returns false at the end of the run.
    ///
    /// # Errors
    ///
    /// [`Stopped`]: `progress` returned false, or a congestion control cannot go on.
    pub fn advance(
        &mut self,
        progress: &mut dyn FnMut(Instant, u64) -> bool,
    ) -> Result<bool, Stopped> {
        self.world.decide();
        Ok(self.world.advance(progress)? == Advance::Decision)
    }

    /// The time on the run's clock.
    pub fn now(&self) -> Instant {
        self.world.now()
    }

    /// Whether a flow, by its place in the scenario, will not send or wait for anything more.
    pub fn is_done(&self, flow: usize) -> bool {
        self.world.is_done(flow)
    }

    /// Ends the run where it is, and returns its results so far.
    pub fn finish(self) -> Outcome {
        outcome(self.world, &self.scenario)
    }
}

fn outcome(world: World<'_>, scenario: &Scenario) -> Outcome {
    let (mut summary, mut tables) = world.finish();
    airpath_network::summarise_groups(scenario, &mut summary, &mut tables);
    Outcome { summary, tables }
}
