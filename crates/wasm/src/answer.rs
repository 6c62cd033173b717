//! The entry point: answers a request.

use airpath_findings::variants::{Comparison, compare};
use airpath_findings::{Budget, Question, explain};
use airpath_scenario::{Parsed, Source};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::packets::{Window, packets};
use crate::parsed::{described, refused, shipped};
use crate::request::{BudgetName, Given, Host, Progress, Request};
use crate::tables::Streams;

/// The answer to a request.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// A JSON object with one key: `ok`; `problems`, for a scenario that cannot be run; `stopped`,
    /// by the host; or `error`, for an invalid request.
    pub document: String,
    /// The tables that `ok.tables` lists, each an Arrow IPC stream at its offset.
    pub tables: Vec<u8>,
}

/// Answers a request: a JSON object whose key `op` selects the operation, see `request.rs`.
///
/// ```
/// let schema = airpath_wasm::answer(r#"{"op": "schema"}"#, &mut |_| true);
/// assert!(schema.document.starts_with(r#"{"ok":{"#));
/// let request = r#"{"op": "parse", "name": "x.toml", "text": "[[flow]]\nkind = 1"}"#;
/// let document = airpath_wasm::answer(request, &mut |_| true).document;
/// assert!(document.starts_with(r#"{"problems":"#) && document.contains(r#""line":2"#));
/// ```
pub fn answer(request: &str, host: Host<'_>) -> Answer {
    let mut streams = Streams::default();
    let document = match serde_json::from_str(request) {
        Ok(request) => answered(&request, host, &mut streams).unwrap_or_else(Failure::document),
        Err(error) => Failure::Error(format!("this is no request: {error}")).document(),
    };
    Answer { document: document.to_string(), tables: streams.bytes() }
}

fn answered(request: &Request, host: Host<'_>, streams: &mut Streams) -> Result<Value, Failure> {
    let ok = match request {
        Request::Shipped => shipped(),
        Request::Schema => airpath_scenario::json_schema(),
        Request::Reference => json!(airpath_scenario::reference_markdown()),
        Request::Parse { scenario } => described(scenario, &parse(scenario)?),
        Request::Simulate { scenario, seed, accounted } => {
            let parsed = parse(scenario)?.scenario;
            let seed = seed.unwrap_or(parsed.run.seed);
            let mut told = |time: airpath_base::Instant, events| {
                host(Progress::Run { time_s: time.as_secs_f64(), events })
            };
            let options = airpath_sim::Options { accounted: *accounted, on_packet: None };
            let run = airpath_sim::simulate_with(&parsed, seed, options, &mut told)?;
            let tables = streams.write(&run.tables.finish(parsed.run.ack_table))?;
            json!({ "summary": run.summary, "tables": tables, "seed": seed })
        }
        Request::Explain { scenario, seed, repeat, budget } => {
            let budget = match budget {
                BudgetName::Quick => Budget::QUICK,
                BudgetName::Full => Budget::FULL,
            };
            let parsed = parse(scenario)?;
            let seed = seed.unwrap_or(parsed.scenario.run.seed);
            let question = Question {
                parsed: &parsed,
                seeds: &budget.seeds_of(seed, *repeat),
                known: &[],
                budget,
                // The caller has no threads to spare; it uses workers to do several things at once.
                threads: 1,
            };
            json!(explain(&question, &mut counted(host))?)
        }
        Request::Compare { scenario, variants, seeds } => {
            let parsed = parse(scenario)?;
            let variants = variants.iter().map(|sets| parsed.document.set(sets));
            let variants = variants
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| Failure::Error(error.to_string()))?;
            variants.iter().try_for_each(runs)?;
            let comparison = Comparison { parsed: &parsed, variants: &variants, seeds, threads: 1 };
            json!(compare(&comparison, &mut counted(host))?)
        }
        Request::Packets { scenario, seed, from_s, to_s, most, sampled, in_flight } => {
            let parsed = parse(scenario)?.scenario;
            let window = Window {
                from_s: *from_s,
                to_s: *to_s,
                most: *most,
                sampled: *sampled,
                in_flight: *in_flight,
            };
            packets(parsed, *seed, &window, host, streams)?
        }
    };
    Ok(json!({ "ok": ok }))
}

/// The host's callback in the form for operations that count runs.
fn counted(host: Host<'_>) -> impl FnMut(usize) -> bool + Send {
    move |done| host(Progress::Runs(done))
}

fn source(given: &Given) -> Source<'_> {
    Source { name: &given.name, text: &given.text, directory: None }
}

fn parse(given: &Given) -> Result<Parsed, Failure> {
    let parsed = airpath_scenario::parse(&source(given), &given.sets)
        .map_err(|error| Failure::Problems(refused(&error)))?;
    runs(&parsed)?;
    Ok(parsed)
}

/// Refuses a scenario that this build cannot run.
fn runs(parsed: &Parsed) -> Result<(), Failure> {
    airpath_sim::runs_here(&parsed.scenario).map_err(|why| Failure::Error(why.to_owned()))
}
