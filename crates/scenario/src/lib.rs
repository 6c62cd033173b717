//! Scenario files: TOML in, a checked [`Scenario`] out.
//!
//! A file is read, checked and built, one after another: [`Document`], `checked.rs`, `build.rs`. A
//! document takes `--set` arguments and [`Edit`]s without being read again. Every problem is reported
//! with its place and with what would be right. The result can be run: nothing is left to validate.
//! The keys are data, from which the reference and the JSON schema are made.
//!
//! This crate runs nothing and does not know the result tables.
//!
//! It may use: `base`, `path`, `quic`, `radio`, `tcp`. Start reading at [`parse`], then at `spec.rs`.
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
mod checked;
mod decimal;
mod digest;
mod document;
mod edit;
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

pub use document::{Document, Parsed};
pub use edit::{Edit, KeyPath, Literal};
pub use model::{
    CoreConfig, EmulationConfig, FlowConfig, GtpuLink, HandUpConfig, HostLinkConfig, NamedStage,
    ObserverKind, PacketIo, ProgramConfig, ProgramPlace, ProxyConfig, ProxyEnds, RadioConfig,
    RunConfig, Scenario, SimulatedOnly, SlowStartOf, StageId, TcpConfig, Traffic, UeHostConfig,
    Usim,
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

/// Parses and checks a scenario; `sets` are `KEY=VALUE` arguments, of which the last one wins.
///
/// # Errors
///
/// All problems that were found; if the file is not TOML, only the syntax errors.
pub fn parse(source: &Source<'_>, sets: &[String]) -> Result<Parsed, ScenarioError> {
    Document::read(source)?.set(sets)
}
