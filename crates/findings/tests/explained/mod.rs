//! Explains a scenario given as text.

use airpath_findings::{Budget, Explanation, Question, explain};
use airpath_scenario::{Source, parse};

/// Explains with settings, from seed 1 on.
pub(crate) fn explained_with(text: &str, sets: &[String], budget: Budget) -> Explanation {
    let source = Source { name: "test.toml", text, directory: None };
    let parsed = parse(&source, sets).expect("it is valid");
    let seeds = budget.seeds_of(1, 1);
    let (known, threads) = (&[], 2);
    let question = Question { parsed: &parsed, seeds: &seeds, known, budget, threads };
    explain(&question, &mut |_| true).expect("not stopped")
}

/// Explains without settings.
pub(crate) fn explained(text: &str, budget: Budget) -> Explanation {
    explained_with(text, &[], budget)
}
