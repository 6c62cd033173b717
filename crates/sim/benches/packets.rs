//! A workload for `make instructions`, which counts instructions instead of time.
//!
//! `cargo bench -p airpath-sim --bench packets -- lte 4` simulates 4 s and prints how many segments
//! arrived. It reads no clock and no file, so that the same program does the same work each time.

#![allow(clippy::print_stdout, reason = "a command line program")]

use airpath_scenario::{Source, parse};

/// One download each, with the defaults of Linux, long enough to go well beyond slow start.
const CASES: [(&str, &str); 3] = [
    ("wire", "[[path.down]]\nstage = \"link\"\nrate_mbps = 230\nqueue_packets = 570\n"),
    ("lte", "[radio]\npreset = \"lte-20\"\n"),
    ("nr", "[radio]\npreset = \"nr-n78\"\n"),
];

/// 15 ms each way, and endpoints whose buffers are never the limit.
const COMMON: &str = "[[path.down]]\nstage = \"delay\"\ndelay_ms = 15\n\
                      [[path.up]]\nstage = \"delay\"\ndelay_ms = 15\n\
                      [[flow]]\nkind = \"bulk\"\nprofile = \"linux-6.18\"\ncongestion = \"cubic\"\n\
                      window_bytes = 67108864\n";

const MSS: u64 = 1448;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let case = words.first().and_then(|word| CASES.iter().find(|(name, _)| name == word));
    let (Some((name, path)), Some(seconds)) = (case, words.get(1)) else {
        panic!("a case ({}) and seconds", CASES.map(|(name, _)| name).join(", "));
    };
    let text = format!("[run]\nduration_s = {seconds}\n{path}{COMMON}");
    let source = Source { name, text: &text, directory: None };
    let scenario = parse(&source, &[]).unwrap_or_else(|error| panic!("{error}")).scenario;
    let outcome = airpath_sim::simulate(&scenario, 1, &mut |_| true).expect("never stopped");
    let delivered: u64 = outcome.summary.flows.iter().map(|flow| flow.bytes_delivered).sum();
    println!("{}", delivered / MSS);
}
