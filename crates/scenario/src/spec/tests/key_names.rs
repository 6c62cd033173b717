//! Tests that every key name the crate asks for is in the tables of the spec, and that every name
//! in those tables is asked for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::tables;
use crate::spec::{Key, Kind};

/// Whether a method can read a key of that kind.
type Fits = fn(Kind) -> bool;

/// The methods of `Fields` and `Get`, with the kinds that they read.
const METHODS: &[(&str, Fits)] = &[
    ("time", |kind| matches!(kind, Kind::Time { .. })),
    ("count", |kind| matches!(kind, Kind::Count { .. })),
    ("narrow", |kind| matches!(kind, Kind::Count { .. })),
    ("flag", |kind| matches!(kind, Kind::Flag)),
    ("real", |kind| matches!(kind, Kind::Real { .. })),
    ("fraction", |kind| matches!(kind, Kind::Fraction)),
    ("rate", |kind| matches!(kind, Kind::Rate)),
    ("choice_of", |kind| matches!(kind, Kind::Choice(_))),
    ("text", |_| true),
    ("given", |_| true),
    ("origin_of", |_| true),
    ("is_there", |_| true),
    ("fill", |_| true),
];

fn keys() -> impl Iterator<Item = &'static Key> {
    tables().flat_map(|table| table.keys(None))
}

/// The crate's source files, except for the tables and test code.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            if !path.ends_with("src/spec") && !path.ends_with("fuzz") {
                open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        } else if !["spec.rs", "fuzz.rs", "schema.rs"].iter().any(|name| path.ends_with(name)) {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned();
            found.push((path, code));
        }
    }
    found
}

/// Every quoted text, with the code before it.
fn quoted(code: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = code[from..].find('"').map(|at| from + at) {
        let Some(length) = code[start + 1..].find('"') else { break };
        found.push((&code[..start], &code[start + 1..start + 1 + length]));
        from = start + 1;
    }
    found
}

/// The method whose first argument follows: `get.time(` and perhaps a line break.
fn method(before: &str) -> Option<&str> {
    let call = before.trim_end().strip_suffix('(')?;
    let call = call.split_once("::<").map_or(call, |_| &call[..call.rfind("::<").unwrap_or(0)]);
    let dot = call.rfind('.')?;
    let name = &call[dot + 1..];
    name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_').then_some(name)
}

#[test]
fn what_is_asked_for_is_a_key_and_of_that_kind() {
    let mut asked = 0;
    for (path, code) in sources() {
        for (before, name) in quoted(&code) {
            let Some(fits) = method(before)
                .and_then(|method| METHODS.iter().find(|(known, _)| *known == method))
                .map(|(_, fits)| fits)
            else {
                continue;
            };
            let fits = |key: &Key| key.name == name && fits(key.kind.plain());
            assert!(keys().any(fits), "{}: no such key is `{name}`", path.display());
            asked += 1;
        }
    }
    assert!(asked > 300, "{asked}");
}

#[test]
fn every_key_is_asked_for() {
    let sources = sources();
    let texts: BTreeSet<&str> =
        sources.iter().flat_map(|(_, code)| quoted(code)).map(|(_, text)| text).collect();
    for key in keys() {
        // A key with its own enumeration is named there; other names are composed of two texts,
        // such as `configured` and `period_ms`.
        let composed = key
            .name
            .match_indices('_')
            .any(|(at, _)| texts.contains(&key.name[..at]) && texts.contains(&key.name[at + 1..]));
        let own = matches!(key.kind, Kind::Choice(_) | Kind::Table | Kind::List);
        assert!(texts.contains(key.name) || composed || own, "nobody asks for `{}`", key.name);
    }
}
