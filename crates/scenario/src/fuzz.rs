//! The body of this crate's fuzz target (`fuzz/`): whatever the file holds, the answer is a
//! scenario or an error that names places. Tests replay the corpus. This is not part of the
//! library.

#[cfg(test)]
mod robust;

use airpath_radio::ran::Ran;

use crate::{Origin, Source, parse};

/// Takes a scenario file; what follows a zero byte is an argument of `--set`.
pub fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = text.split('\0');
    let text = parts.next().unwrap_or_default();
    judge(text, &parts.map(str::to_owned).collect::<Vec<_>>());
}

/// Parses a scenario, and then its resolved text.
///
/// # Panics
/// If the two differ, the model refuses the scenario, or a problem has no place.
pub fn judge(text: &str, sets: &[String]) {
    let source = Source { name: "s.toml", text, directory: None };
    match parse(&source, sets) {
        Ok(parsed) => {
            if let Some(radio) = &parsed.scenario.radio {
                // The model panics for what it refuses.
                Ran::new(&radio.ran, 1);
            }
            let resolved = Source { text: &parsed.resolved_toml, ..source };
            let again = parse(&resolved, &[]);
            assert_eq!(again.map(|again| again.scenario), Ok(parsed.scenario.without_secrets()));
        }
        Err(error) => {
            assert!(!error.problems.is_empty());
            let lines = text.split('\n').count();
            for problem in &error.problems {
                match &problem.origin {
                    Origin::File { line, column, .. } => {
                        assert!((1..=lines).contains(line), "{problem}");
                        assert!(*column >= 1);
                    }
                    Origin::Set { text, .. } => {
                        let shown = text.strip_suffix("=…").unwrap_or(text);
                        assert!(sets.iter().any(|set| set.contains(shown)));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_is_survived() {
        airpath_testing::replay("scenario", super::scenario);
    }
}
