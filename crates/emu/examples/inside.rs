//! Runs a command in a scenario's network, and prints what the forwarder counted:
//! `inside SCENARIO COMMAND...`.

use std::io::{Write, stdout};
use std::path::Path;

use airpath_emu::{Emulation, Plan, Settings};
use airpath_scenario::{Source, parse, shipped};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let name = words.next().ok_or("SCENARIO COMMAND...")?;
    let text = match shipped().iter().find(|(known, _)| *known == name) {
        Some((_, text)) => (*text).to_owned(),
        None => std::fs::read_to_string(&name)?,
    };
    let source = Source { name: &name, text: &text, directory: Path::new(&name).parent() };
    let sets: Vec<String> = std::env::var("SETS")
        .map(|s| s.split(' ').map(str::to_owned).collect())
        .unwrap_or_default();
    let scenario = parse(&source, &sets)?.scenario;
    let coalesce_bytes =
        std::env::var("COALESCE").ok().and_then(|v| v.parse().ok()).unwrap_or(65_535);
    let settings = Settings {
        coalesce_bytes,
        journal: std::env::var("JOURNAL").is_ok(),
        ..Settings::default()
    };
    let emulation = Emulation::new(&scenario, 1, &settings)?;
    let servers = std::env::var("SERVER").into_iter().collect();
    let plan = Plan { command: words.collect(), place: None, servers, quiet: false };
    let ended = emulation.run(&plan)?;
    writeln!(stdout(), "{}: {}", ended.code, serde_json::to_string_pretty(&ended.report)?)?;
    if let Some(journal) = ended.journal {
        let (left, dropped) = journal.outcome();
        writeln!(
            stdout(),
            "replay agrees: {} ({} left, {} dropped)",
            journal.replay(&scenario, 1).outcome() == (left.clone(), dropped.clone()),
            left.len(),
            dropped.len()
        )?;
    }
    if std::env::var("FACTS").is_ok() {
        writeln!(stdout(), "{}", serde_json::to_string_pretty(&ended.facts)?)?;
    }
    Ok(())
}
