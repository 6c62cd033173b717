//! Scenario files: TOML in, a checked [`Scenario`] out.
//!
//! A file is parsed once. `--set` arguments are merged in before anything is decoded. Every problem
//! is reported with its place and with what would be right. The result can be run: nothing is left
//! to validate. The keys are data, from which the reference and the JSON schema are made.
//!
//! This crate runs nothing and does not know the result tables.
//!
//! It may use: `base`, `path`, `radio`, `tcp`. Start reading at [`parse`], then at `spec.rs`.
//!
//! ```
//! use airpath_scenario::{Source, parse};
//!
//! let text = "[[path.up]]\nstage = \"delay\"\ndelay_ms = 10\n[[flow]]\nkind = \"bulk\"\n";
//! let source = Source { name: "wire.toml", text, directory: None };
//! let parsed = parse(&source, &["run.duration_s=2.5".to_owned()])?;
//! assert_eq!(parsed.scenario.run.duration.as_secs_f64(), 2.5);
//! assert_eq!(parsed.scenario.flows[0].id, "bulk-0");
//!
//! let error = parse(&source, &["flow.0.windw_bytes=1".to_owned()]).unwrap_err();
//! assert!(error.to_string().contains("did you mean `window_bytes`?"));
//! # Ok::<(), airpath_scenario::ScenarioError>(())
//! ```

mod build;
mod check;
mod decimal;
mod digest;
mod document;
mod flow;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod get;
mod list;
mod model;
mod node;
mod numbers;
mod problem;
mod profiles;
mod programs;
mod proxy;
mod queue;
mod radio;
mod read;
mod reference;
mod resolve;
mod schema;
mod secret;
mod set;
mod shipped;
mod source;
mod spec;
mod stage;
mod subscription;
mod suggest;
mod traces;
mod value;

use document::Document;
use node::Node;
use problem::Problems;

pub use model::{
    CoreConfig, EmulationConfig, FlowConfig, GtpuLink, HandUpConfig, HostLinkConfig, NamedStage,
    ObserverKind, PacketIo, ProgramConfig, ProgramPlace, ProxyConfig, ProxyEnds, RadioConfig,
    RunConfig, Scenario, SimulatedOnly, SlowStartOf, TcpConfig, Traffic, UeHostConfig, Usim,
};
pub use problem::{Origin, Problem, ScenarioError};
pub use profiles::profiles;
pub use radio::presets::radio_presets;
pub use reference::reference_markdown;
pub use schema::json_schema;
pub use secret::{redacted, secret_hash};
pub use shipped::shipped;
pub use source::Source;
pub use traces::TraceFile;

/// A scenario and its provenance.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The scenario to run.
    pub scenario: Scenario,
    /// The scenario as TOML with every key that has a value, defaults included, in canonical order.
    /// It parses to the same scenario, [without secrets](Scenario::without_secrets). Trace files
    /// are named as given, so relative names need the same [`Source::directory`].
    pub resolved_toml: String,
    /// SHA-256 in hexadecimal of [`Parsed::resolved_toml`], followed by a line
    /// `trace FILE SHA256` for each of [`Parsed::traces`].
    pub sha256: String,
    /// Trace files, in the order of first use.
    pub traces: Vec<TraceFile>,
    /// Keys of the flows that only simulated endpoints follow, where they differ from the flow's
    /// profile.
    pub simulated_only: Vec<SimulatedOnly>,
}

/// Parses and checks a scenario; `sets` are `KEY=VALUE` arguments, of which the last one wins.
///
/// # Errors
///
/// All problems that were found; if the file is not TOML, only the syntax errors.
pub fn parse(source: &Source<'_>, sets: &[String]) -> Result<Parsed, ScenarioError> {
    let mut problems = Problems::default();
    let mut root = Node::parse(source.name, source.text, &mut problems);
    // What the parser recovered from a broken file is not what was meant.
    problems.finish()?;
    let mut problems = Problems::default();
    for set in sets {
        set::apply(&mut root, set, &mut problems);
    }
    let document = Document::read(source, &root, &mut problems);
    problems.finish()?;
    let scenario = build::scenario(&document);
    let resolved_toml = resolve::write(&document);
    let traces = document.traces.files();
    let mut hashed = resolved_toml.clone();
    for trace in &traces {
        hashed.push_str(&format!("trace {} {}\n", trace.file, trace.sha256));
    }
    let sha256 = digest::sha256_hex(hashed.as_bytes());
    Ok(Parsed { scenario, resolved_toml, sha256, simulated_only: document.simulated_only, traces })
}
