//! Forwards the kernel's packets between two TUN devices through a scenario's path.
//!
//! Standard output is one JSON document. The run ends after `--duration`, or when standard input
//! ends: whoever started it needs no signal, and takes it along when it dies.

use std::fs::File;
use std::io::{BufWriter, Write, stderr, stdin, stdout};
use std::path::Path;
use std::process::ExitCode;

use airpath_base::Duration;
use airpath_emu::{
    Awake, Device, EmuError, Forwarder, Report, Settings, Tun, UeEnd, real_time_priority,
};
use airpath_scenario::{ScenarioError, Source, parse};
use rustix::mm::{MlockAllFlags, mlockall};
use serde::Serialize;

const USAGE: &str = "\
usage: airpath-referee SCENARIO --server NAMESPACE:DEVICE --ue NAMESPACE:DEVICE
                       [--set KEY=VALUE]... [--seed N] [--duration SECONDS]
                       [--spin-us N] [--log FILE --log-records N]";

/// Above what the desktop uses, below the kernel's own threads.
const PRIORITY: i32 = 50;

/// A day: until standard input ends.
const LONGEST_S: f64 = 86_400.0;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(stderr(), "airpath-referee: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}\n{USAGE}")]
    Usage(String),
    #[error("{file}: {source}")]
    File { file: String, source: std::io::Error },
    #[error("{0}")]
    Scenario(#[from] ScenarioError),
    #[error("{0}")]
    Emu(#[from] EmuError),
    #[error("standard output: {0}")]
    Output(std::io::Error),
}

impl Failure {
    /// 2 for bad use, 1 for failure.
    fn code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Scenario(_) => 2,
            Self::Emu(error) if error.is_bad_use() => 2,
            Self::File { .. } | Self::Emu(_) | Self::Output(_) => 1,
        }
    }
}

struct Arguments {
    scenario: String,
    ends: [Device; 2],
    sets: Vec<String>,
    seed: Option<u64>,
    duration: Duration,
    settings: Settings,
    log: Option<String>,
}

#[derive(Serialize)]
struct Document {
    scenario: String,
    scenario_sha256: String,
    seed: u64,
    version: &'static str,
    /// Scheduled first in first out.
    real_time: bool,
    #[serde(flatten)]
    report: Report,
}

fn run() -> Result<(), Failure> {
    let arguments = Arguments::read(std::env::args().skip(1))?;
    let file = &arguments.scenario;
    let text = std::fs::read_to_string(file)
        .map_err(|source| Failure::File { file: file.clone(), source })?;
    let source = Source { name: file, text: &text, directory: Path::new(file).parent() };
    let parsed = parse(&source, &arguments.sets)?;
    let scenario = &parsed.scenario;
    let seed = arguments.seed.unwrap_or(scenario.run.seed);

    let [server, ue] = &arguments.ends;
    let tun = Tun::attach(ue)?;
    let ue = UeEnd { name: "ue".to_owned(), tun: tun.into(), ue: 0, addresses: Vec::new() };
    let (server, settings) = (Tun::attach(server)?, &arguments.settings);
    let mut forwarder = Forwarder::new(server, vec![ue], scenario, seed, settings)?;
    let (real_time, _awake) = prepare_thread();
    say("ready");
    forwarder.run(&stdin(), arguments.duration)?;

    let document = Document {
        scenario: scenario.name.clone(),
        scenario_sha256: parsed.sha256.clone(),
        seed,
        version: env!("CARGO_PKG_VERSION"),
        real_time,
        report: forwarder.report(),
    };
    if let (Some(file), Some(log)) = (&arguments.log, forwarder.log()) {
        let failed = |source| EmuError::Log { file: file.clone(), source };
        let mut out = BufWriter::new(File::create(file).map_err(failed)?);
        log.write(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    }
    let mut out = stdout().lock();
    serde_json::to_writer(&mut out, &document).map_err(|error| Failure::Output(error.into()))?;
    writeln!(out).map_err(Failure::Output)
}

/// Real-time priority, memory that stays and processors that do not sleep, where that is allowed;
/// lateness tells the rest.
fn prepare_thread() -> (bool, Option<Awake>) {
    if let Err(error) = mlockall(MlockAllFlags::CURRENT) {
        say(&format!("memory is not locked: {error}"));
    }
    let priority = real_time_priority(PRIORITY);
    if let Err(error) = &priority {
        say(&format!("no real-time priority, so packets will be late now and then: {error}"));
    }
    let awake = Awake::keep();
    if let Err(error) = &awake {
        say(&format!("idle processors sleep, so packets will be later: {error}"));
    }
    (priority.is_ok(), awake.ok())
}

fn say(text: &str) {
    // Nobody may be listening.
    let _ = writeln!(stderr(), "airpath-referee: {text}");
}

impl Arguments {
    fn read(mut given: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let usage = |text: String| Failure::Usage(text);
        let (mut scenario, mut server, mut ue) = (None, None, None);
        let (mut sets, mut seed, mut log) = (Vec::new(), None, None);
        let mut duration = Duration::from_secs_f64(LONGEST_S);
        let mut settings = Settings::default();
        while let Some(argument) = given.next() {
            if !argument.starts_with("--") {
                if scenario.replace(argument).is_some() {
                    return Err(usage("one scenario at a time".to_owned()));
                }
                continue;
            }
            let value = given.next().ok_or_else(|| usage(format!("{argument} wants a value")))?;
            let number = || {
                let wrong = || usage(format!("{argument} {value}: no whole number"));
                value.parse::<u64>().map_err(|_| wrong())
            };
            match argument.as_str() {
                "--server" => server = Some(value.parse()?),
                "--ue" => ue = Some(value.parse()?),
                "--seed" => seed = Some(number()?),
                "--spin-us" => settings.spin = Duration::from_micros(number()?.min(1_000_000)),
                "--log-records" => settings.log_records = number()? as usize,
                "--duration" => {
                    let seconds = value.parse().ok().filter(|s| *s > 0.0 && *s <= LONGEST_S);
                    let wrong = || usage(format!("--duration {value}: above 0, up to {LONGEST_S}"));
                    duration = Duration::from_secs_f64(seconds.ok_or_else(wrong)?);
                }
                "--set" => sets.push(value),
                "--log" => log = Some(value),
                _ => return Err(usage(format!("unknown option {argument}"))),
            }
        }
        if log.is_some() != (settings.log_records > 0) {
            return Err(usage("--log FILE and --log-records N go together".to_owned()));
        }
        match (scenario, server, ue) {
            (Some(scenario), Some(server), Some(ue)) => {
                Ok(Self { scenario, ends: [server, ue], sets, seed, duration, settings, log })
            }
            _ => Err(usage("SCENARIO, --server and --ue are needed".to_owned())),
        }
    }
}
