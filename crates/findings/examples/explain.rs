//! `cargo run --release -p airpath-findings --example explain -- NAME [KEY=VALUE]…`: what limits a
//! shipped scenario.
#![allow(clippy::print_stdout, clippy::disallowed_methods)]

use airpath_findings::{Budget, Question, explain};
use airpath_scenario::{Source, parse, shipped};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next().unwrap_or_default();
    let sets: Vec<String> = arguments.collect();
    for (name, text) in shipped() {
        if !wanted.is_empty() && *name != wanted {
            continue;
        }
        let source = Source { name, text, directory: None };
        let parsed = parse(&source, &sets).expect("a scenario");
        let question = Question {
            parsed: &parsed,
            seeds: &Budget::QUICK.seeds_of(parsed.scenario.run.seed, 1),
            known: &[],
            budget: Budget::QUICK,
            threads: 2,
        };
        let began = std::time::Instant::now();
        let answer = explain(&question, &mut |_| true).expect("not stopped");
        println!("== {name}: {} runs, {:.2} s", answer.runs, began.elapsed().as_secs_f64());
        for finding in &answer.findings {
            println!(
                "{:.2} {} {}: {}",
                finding.score, finding.cause, finding.subject, finding.evidence
            );
            if let Some(advice) = &finding.advice {
                println!("    -> {advice} {:?}", finding.set.as_deref().unwrap_or_default());
            }
            if let Some(gain) = &finding.gain {
                println!(
                    "       {} {}: {:.3?} -> {:.3?} {:?}; costs {:?}",
                    gain.flow,
                    gain.metric,
                    gain.before,
                    gain.after,
                    gain.ci95,
                    finding
                        .costs
                        .iter()
                        .map(|cost| format!(
                            "{} {} {:.2?}->{:.2?}",
                            cost.flow, cost.metric, cost.before, cost.after
                        ))
                        .collect::<Vec<_>>()
                );
            }
        }
        for tried in &answer.tried {
            println!(
                "    tried {} {} {:?}: {} {:?}",
                tried.cause, tried.subject, tried.set, tried.outcome, tried.score
            );
        }
    }
}
