//! Scenario files: TOML in, a checked [`Scenario`] out.
//!
//! A file is parsed once. `--set` arguments are merged in before anything is decoded, and every
//! problem is reported with its place and with what would be right. What comes out can be run:
//! nothing is left to validate. This crate does not run anything.
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
mod crossing;
mod decimal;
mod document;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod list;
mod model;
mod node;
mod pairs;
mod problem;
mod profiles;
mod programs;
mod proxy;
mod radio;
mod read;
mod reference;
mod resolve;
mod schema;
mod secret;
mod set;
mod shipped;
mod spec;
mod subscription;
mod suggest;
mod traces;
mod value;

use std::path::Path;

use document::Document;
use node::Node;
use problem::Problems;

pub use model::{
    CoreConfig, Direction, EmulationConfig, FlowConfig, GtpuLink, NamedStage, PacketIo,
    ProgramConfig, ProgramPlace, ProxyConfig, ProxyEnds, RadioConfig, RunConfig, Scenario,
    SlowStartOf, TcpConfig, Traffic, Usim, Watching,
};
pub use problem::{Origin, Problem, ScenarioError};
pub use profiles::profiles;
pub use radio::presets::radio_presets;
pub use reference::reference_markdown;
pub use schema::json_schema;
pub use secret::{secret_hash, secret_keys};
pub use shipped::shipped;
pub use traces::TraceFile;

/// A scenario file.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// What messages call it; also gives the scenario its name, if the file does not.
    pub name: &'a str,
    /// What it holds.
    pub text: &'a str,
    /// Where relative trace files are; the current directory if `None`.
    pub directory: Option<&'a Path>,
}

/// A scenario and its provenance.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// What to run.
    pub scenario: Scenario,
    /// The scenario as TOML with every key that has a value, defaults included, in canonical
    /// order. It parses to the same scenario, [without secrets](Scenario::without_secrets). Trace files stand in it as given, so relative ones
    /// need the same [`Source::directory`].
    pub resolved_toml: String,
    /// SHA-256 in hexadecimal of [`Parsed::resolved_toml`], followed by a line
    /// `trace FILE SHA256` for each of [`Parsed::traces`].
    pub sha256: String,
    /// Trace files, in the order of first use.
    pub traces: Vec<TraceFile>,
}

/// Parses and checks a scenario; `sets` are `KEY=VALUE` arguments, the last one wins.
///
/// # Errors
///
/// All problems that were found; where the file is no TOML, only those.
pub fn parse(source: &Source<'_>, sets: &[String]) -> Result<Parsed, ScenarioError> {
    let mut problems = Problems::default();
    let mut root = Node::parse(source.name, source.text, &mut problems);
    // What the parser made of the rest of a broken file is not what was meant.
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
    Ok(Parsed { scenario, resolved_toml, sha256: traces::sha256_hex(hashed.as_bytes()), traces })
}
