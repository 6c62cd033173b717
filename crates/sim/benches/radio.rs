//! CPU time of bulk TCP downloads over a cell, one JSON line per case.
//!
//! `cargo bench -p airpath-sim --bench radio -- --preset nr-n78 --ues 10 --active 1 --seconds 10`
//! (`--profile NAME`: endpoints, `--delay-ms N`: one way beyond the cell, `--set KEY=VALUE`: any key
//! of the scenario, `--counted`: reads no clock, so that callgrind can count it).

#![allow(clippy::print_stdout, reason = "a command line program")]

use std::fmt::Write;

use airpath_base::Instant;
use airpath_scenario::{Scenario, Source, parse};

fn main() {
    let arguments = Arguments::parse(std::env::args().skip(1));
    let scenario = arguments.scenario();
    // Slow start and one-time allocations are over by then.
    let warm = Instant::ZERO + scenario.run.duration / 5;
    let (mut from, mut until) = (None, None);
    // callgrind has no CPU clock, and counts without one.
    let clock = || if arguments.counted { 0.0 } else { cpu_seconds() };
    let before = clock();
    let outcome = airpath_sim::simulate(&scenario, 1, &mut |now| {
        let reading = (now, clock());
        until = Some(reading);
        from = from.or((now >= warm).then_some(reading));
        true
    });
    let cpu = clock() - before;
    let summary = outcome.expect("never stopped").summary;
    let steady = match (from, until) {
        (Some((from, before)), Some((until, after))) if from < until => {
            (after - before) / (until - from).as_secs_f64()
        }
        _ => cpu / summary.duration_s,
    };
    let flows = &summary.flows;
    let segments: u64 = flows.iter().map(|flow| flow.bytes_delivered / MSS).sum();
    let goodput: f64 = flows.iter().filter_map(|flow| flow.goodput_mbps).sum();
    let retransmitted: u64 = flows.iter().filter_map(|flow| flow.retransmitted_segments).sum();
    let down = || summary.radio.iter().filter(|radio| radio.id.ends_with(".down"));
    let again: u64 = down().map(|radio| radio.harq_retransmissions).sum();
    let grants: u64 = summary.radio.iter().map(|radio| radio.grants).sum();
    println!(
        "{{\"tool\":\"airpath\",\"preset\":\"{}\",\"ues\":{},\"active\":{},\"simulated_s\":{},\
         \"cpu_s\":{cpu:.5},\"steady_cpu_per_s\":{steady:.6},\"delivered_segments\":{segments},\
         \"goodput_mbps\":{goodput:.2},\"retransmissions\":{retransmitted},\
         \"harq_retransmissions\":{again},\"grants\":{grants},\"events\":{},\
         \"ns_per_segment\":{:.1},\"simulated_s_per_cpu_s\":{:.1}}}",
        arguments.preset,
        arguments.ues,
        arguments.active,
        arguments.seconds,
        summary.events,
        cpu * 1e9 / segments.max(1) as f64,
        arguments.seconds as f64 / cpu,
    );
}

const MSS: u64 = 1448;

struct Arguments {
    preset: String,
    profile: String,
    ues: u64,
    active: u64,
    seconds: u64,
    delay_ms: u64,
    sets: Vec<String>,
    counted: bool,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Self {
        let mut parsed = Self {
            preset: "nr-n78".to_owned(),
            profile: "rfc".to_owned(),
            ues: 1,
            active: 1,
            seconds: 10,
            delay_ms: 5,
            sets: Vec::new(),
            counted: false,
        };
        while let Some(word) = words.next() {
            if word == "--bench" {
                continue; // cargo adds it
            }
            if word == "--counted" {
                parsed.counted = true;
                continue;
            }
            let value = words.next().unwrap_or_default();
            let number = || -> u64 {
                let number = value.parse();
                number.unwrap_or_else(|_| panic!("{word} wants a whole number, not {value:?}"))
            };
            match word.as_str() {
                "--preset" => parsed.preset = value,
                "--profile" => parsed.profile = value,
                "--ues" => parsed.ues = number(),
                "--active" => parsed.active = number(),
                "--seconds" => parsed.seconds = number(),
                "--delay-ms" => parsed.delay_ms = number(),
                "--set" => parsed.sets.push(value),
                _ => panic!("unknown argument {word:?}"),
            }
        }
        let Self { active, ues, .. } = parsed;
        assert!(active <= ues, "--active {active} is more than --ues {ues}");
        parsed
    }

    /// The active UEs download, each for itself; the endpoints' buffers are never the limit.
    fn scenario(&self) -> Scenario {
        let Self { preset, profile, ues, active, seconds, delay_ms, .. } = self;
        let mut text = format!("[run]\nduration_s = {seconds}\n");
        for direction in ["down", "up"] {
            let _ =
                writeln!(text, "[[path.{direction}]]\nstage = \"delay\"\ndelay_ms = {delay_ms}");
        }
        let _ = writeln!(text, "[radio]\npreset = \"{preset}\"");
        let _ = writeln!(text, "[[radio.ue]]\nname = \"ue\"\ncount = {ues}");
        for ue in 0..*active {
            let _ = writeln!(
                text,
                "[[flow]]\nkind = \"bulk\"\nue = \"ue-{ue}\"\nprofile = \"{profile}\"\n\
                 congestion = \"cubic\"\nwindow_bytes = {WINDOW}\nrto.min_ms = 200"
            );
        }
        if *active == 0 {
            // A scenario needs a flow: one that begins when everything is over.
            let last = *seconds as f64 - 0.001;
            let _ = writeln!(text, "[[flow]]\nkind = \"ping\"\nstart_s = {last}");
        }
        let source = Source { name: "radio bench", text: &text, directory: None };
        parse(&source, &self.sets).unwrap_or_else(|error| panic!("{error}")).scenario
    }
}

/// Size of the send buffer and of the receive buffer, in bytes.
const WINDOW: u64 = 64 << 20;

/// CPU time of this process.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
