//! Scenarios whose advice is followed.

use std::fs;
use std::path::{Path, PathBuf};

use airpath_scenario::{Source, parse};
use toml::{Table, Value};

/// A scenario with settings.
pub(crate) struct Case {
    /// Name of the scenario.
    pub(crate) name: String,
    text: String,
    directory: Option<PathBuf>,
    /// Settings that override the scenario's keys.
    pub(crate) sets: Vec<String>,
}

impl Case {
    /// The source to pass to `parse`.
    pub(crate) fn source(&self) -> Source<'_> {
        Source { name: &self.name, text: &self.text, directory: self.directory.as_deref() }
    }
}

/// Every scenario whose advice `make findings` follows.
pub(crate) fn all() -> Vec<Case> {
    let mut all = shipped();
    all.extend(studies());
    all.extend(planted());
    all
}

/// The scenarios that come with the program.
pub(crate) fn shipped() -> Vec<Case> {
    let case = |&(name, text): &(&str, &str)| Case {
        name: name.to_owned(),
        text: text.to_owned(),
        directory: None,
        sets: Vec::new(),
    };
    airpath_scenario::shipped().iter().map(case).collect()
}

/// Every scenario of a study with each list of settings that the study has for it.
fn studies() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/airpath/studies");
    let mut cases = Vec::new();
    for directory in entries(&root) {
        let text = fs::read_to_string(directory.join("study.toml")).expect("a study");
        let study: Table = text.parse().expect("TOML");
        let mut variants = Vec::new();
        collect(&Value::Table(study.clone()), "scenario.toml", &mut variants);
        variants.insert(0, (study["scenario"].as_str().expect("text").to_owned(), Vec::new()));
        let mut seen: Vec<(String, Vec<String>)> = Vec::new();
        for variant in variants {
            if seen.contains(&variant) {
                continue;
            }
            let (file, sets) = &variant;
            let study = study["id"].as_str().expect("text");
            let case = Case {
                name: format!("{study}/{file} {}", sets.join(" ")).trim_end().to_owned(),
                text: fs::read_to_string(directory.join(file)).expect("a scenario"),
                directory: Some(directory.clone()),
                sets: sets.clone(),
            };
            // An assumption does not say which scenarios of its study it applies to.
            if parse(&case.source(), sets).is_ok() {
                cases.push(case);
            }
            seen.push(variant);
        }
    }
    cases
}

/// Collects settings in a part of a study, with the scenario that they apply to: the one named
/// closest above them.
fn collect(part: &Value, scenario: &str, into: &mut Vec<(String, Vec<String>)>) {
    match part {
        Value::Table(table) => {
            let scenario = table.get("scenario").and_then(Value::as_str).unwrap_or(scenario);
            if let Some(sets) = table.get("set").and_then(Value::as_array) {
                let sets = sets.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                into.push((scenario.to_owned(), sets));
            }
            for value in table.values() {
                collect(value, scenario, into);
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, scenario, into)),
        _ => {}
    }
}

/// The scenarios that `--test planted` kept in `FINDINGS_KEEP`.
fn planted() -> Vec<Case> {
    let Ok(directory) = std::env::var("FINDINGS_KEEP") else { return Vec::new() };
    let case = |file: PathBuf| Case {
        name: file.file_stem().expect("a name").to_string_lossy().into_owned(),
        text: fs::read_to_string(&file).expect("a scenario"),
        directory: None,
        sets: Vec::new(),
    };
    entries(Path::new(&directory)).into_iter().map(case).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths
}
