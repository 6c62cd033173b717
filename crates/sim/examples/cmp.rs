//! Local comparison runner.
use airpath_scenario::{Source, parse};
fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap();
    let seed: u64 = args.next().unwrap().parse().unwrap();
    let sets: Vec<String> = args.collect();
    let text = std::fs::read_to_string(&path).unwrap();
    let source = Source { name: &path, text: &text, directory: None };
    let parsed = parse(&source, &sets).unwrap_or_else(|error| panic!("{error}"));
    let run = airpath_sim::simulate(&parsed.scenario, seed, &mut |_| true).unwrap();
    #[allow(clippy::print_stdout)]
    { println!("{}", serde_json::to_string(&run.summary).unwrap()); }
}
