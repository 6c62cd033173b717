//! Where the time of a shipped scenario's flows goes: `cargo run --release -p airpath-sim --example
//! breakdown -- NAME [KEY=VALUE]…`.

#![expect(clippy::print_stdout, reason = "it is a program")]

use airpath_record::DelayBreakdown;
use airpath_scenario::{Source, parse, shipped};
use airpath_sim::{Options, simulate_with};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next();
    let sets: Vec<String> = arguments.collect();
    for (name, text) in shipped() {
        if wanted.as_ref().is_some_and(|wanted| wanted != name && wanted != "all") {
            continue;
        }
        let source = Source { name, text, directory: None };
        let parsed = parse(&source, &sets).unwrap_or_else(|error| panic!("{error}"));
        let options = Options { accounted: true, ..Options::default() };
        let outcome = simulate_with(&parsed.scenario, 1, options, &mut |_, _| true);
        let summary = outcome.expect("not stopped").summary;
        for flow in &summary.breakdowns {
            for (what, times) in [("RTT", &flow.rtt_ms), ("delay", &flow.delay_ms)] {
                let Some(times) = times else { continue };
                println!("{name}: {} of {}, {:.3} ms", what, flow.id, times.mean);
                show(times);
            }
            let Some(rate) = &flow.goodput_mbps else { continue };
            let place = rate.place.as_deref().unwrap_or("");
            println!("{name}: {:.3} of {:.3} Mb/s of {place}", rate.goodput, rate.capacity);
            for part in &rate.parts {
                println!("  {:>10.4} Mb/s {:5.1} %  {}", part.mbps, 100.0 * part.share, part.part);
            }
        }
    }
}

fn show(times: &DelayBreakdown) {
    for part in &times.parts {
        let place = part.place.as_deref().unwrap_or("");
        println!("  {:>10.4} ms {:5.1} %  {} {place}", part.ms, 100.0 * part.share, part.part);
    }
}
