//! Suggests what was probably meant by an unknown key.

use crate::Origin;
use crate::problem::Problems;
use crate::spec::{CELL, Key, PARTS, RADIO, ROOT, Table};

/// More keys of one name than this are no suggestion.
const MOST_MEANT: usize = 3;

/// Reports a key that the table does not have, or does not have for this variant.
pub(crate) fn unknown_key(
    name: &str,
    origin: &Origin,
    table: &Table,
    variant: Option<&str>,
    here: &str,
    problems: &mut Problems,
) {
    // The search for the key that was meant takes longer than reading a key.
    if problems.only_counts() {
        return;
    }
    let subtable = name.split_once('.').map(|(subtable, _)| subtable);
    let of_subtable = |key: &&Key| subtable.is_none() || key.subtable() == subtable;
    // The keys of a subtable are listed if one of them was meant.
    let listed = |key: &'static Key| match key.subtable() {
        Some(table) if subtable.is_none() => format!("{table}.…"),
        _ => key.name.to_owned(),
    };
    let allowed = match list(table.keys(variant).filter(of_subtable).map(listed)) {
        none if none.is_empty() => "nothing".to_owned(),
        names => names,
    };
    let elsewhere = table.variants_of(name);
    if !elsewhere.is_empty() {
        // Only a table with a selector has variants.
        let selector = table.selector.unwrap_or_default();
        let message = format!("`{name}` does not apply to {here}");
        let values = list(elsewhere.iter().map(|each| format!("\"{each}\"")));
        let help = format!("it is valid for {selector} {values}");
        problems.add_unknown(origin, message, Some(help), allowed);
        return;
    }
    let message = match table.path {
        "" => format!("unknown key `{name}` at the top level"),
        _ => format!("unknown key `{name}` in {here}"),
    };
    let keys = || table.keys(variant).map(|key| key.name);
    let near = meant(name, keys).or_else(|| meant_in_a_subtable(name, table, variant));
    let near = near.map(str::to_owned).or_else(|| meant_in_a_part(name, table));
    let near = near.map(|near| format!("did you mean `{near}`?"));
    problems.add_unknown(origin, message, near, allowed);
}

/// Names that other programs, or people, use for a key. The first key that the table has is
/// suggested.
const SYNONYMS: &[(&[&str], &[&str])] = &[
    (&["name", "label"], &["id", "name"]),
    (&["id"], &["name"]),
    (&["type", "protocol", "traffic"], &["kind", "stage"]),
    (&["latency", "propagation", "owd", "rtt"], &["delay_ms"]),
    (&["bandwidth", "bw", "capacity", "speed", "throughput", "bitrate", "bps"], &["rate_mbps"]),
    (&["loss", "plr", "drop", "percent"], &["probability", "rate_mbps"]),
    (&["cc", "cca", "tcp", "algorithm", "congestion_control"], &["congestion"]),
    (
        &["buffer", "queue", "limit", "queue_size", "buffer_size"],
        &["queue_packets", "ring_packets"],
    ),
    (&["qdisc", "queue_discipline", "discipline"], &["aqm"]),
    (&["length", "bytes", "amount"], &["size_bytes"]),
    (&["time", "runtime", "length"], &["duration_s"]),
    (&["begin", "from", "at"], &["start_s"]),
    (&["period", "every"], &["interval_ms"]),
    (&["rwnd", "rwin", "rcvbuf"], &["receive_buffer_bytes", "window_bytes"]),
    (&["sndbuf", "wmem"], &["send_buffer_bytes"]),
    (&["iw", "initcwnd"], &["initial_window_segments"]),
    (&["cmd", "exec", "program", "run"], &["command"]),
    (&["where", "node", "end", "place", "host"], &["at", "ue"]),
    (&["trace", "filename", "log"], &["file"]),
    (&["description"], &["title"]),
    (&["random_seed"], &["seed"]),
];

/// The key that was probably meant: misspelt, or called by another name.
fn meant<'a, I: Iterator<Item = &'a str>>(name: &str, keys: impl Fn() -> I) -> Option<&'a str> {
    let plain = name.to_lowercase();
    let stem = |word: &str| {
        plain == word || plain.strip_prefix(word).is_some_and(|unit| unit.starts_with('_'))
    };
    let forgotten = keys()
        .filter(|key| is_unit_of(key, name) || is_unit_of(name, key))
        .min_by_key(|key| key.len());
    forgotten
        .or_else(|| {
            SYNONYMS.iter().filter(|(words, _)| words.iter().any(|word| stem(word))).find_map(
                |(_, right)| right.iter().find_map(|right| keys().find(|key| key == right)),
            )
        })
        .or_else(|| nearest(name, keys()))
}

/// The key of a table within the table that was probably meant: its name there is this one, or nearly.
fn meant_in_a_subtable(name: &str, table: &Table, variant: Option<&str>) -> Option<&'static str> {
    let keys = || table.keys(variant);
    let leaf = |key: &'static Key| key.name.split_once('.').map(|(_, leaf)| leaf);
    let meant = nearest(name, keys().filter_map(leaf))?;
    keys().find(|key| leaf(key) == Some(meant)).map(|key| key.name)
}

/// The path of the radio's table of this name, or of the few keys of this name in those tables.
fn meant_in_a_part(name: &str, table: &Table) -> Option<String> {
    if ![ROOT.path, RADIO.path].contains(&table.path) {
        return None;
    }
    let parts =
        || std::iter::once(("cell", &CELL)).chain(PARTS.iter().map(|part| (part.name, part.table)));
    if let Some((part, _)) = parts().find(|&(part, _)| part == name) {
        return Some(format!("radio.{part}"));
    }
    let found: Vec<_> = parts()
        .filter(|(_, table)| table.find(name, None).is_some())
        .map(|(part, _)| format!("radio.{part}.{name}"))
        .collect();
    (1..=MOST_MEANT).contains(&found.len()).then(|| found.join("` or `"))
}

/// A missing unit, or one too many, is the likeliest mistake.
fn is_unit_of(long: &str, short: &str) -> bool {
    long.strip_prefix(short).is_some_and(|rest| rest.starts_with('_'))
}

/// Reports that `key` refers to a `what` called `name` that does not exist. At most twenty of the
/// existing names are listed.
pub(crate) fn unknown_name<'a>(
    key: &str,
    what: &str,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
    origin: &Origin,
    problems: &mut Problems,
) {
    let near = nearest(name, names.clone())
        .map_or_else(String::new, |near| format!("did you mean \"{near}\"? "));
    problems.add_with_help(
        origin,
        format!("`{key}`: there is no {what} {name:?}"),
        format!("{near}{what}s: {}", list(names.take(20))),
    );
}

/// The candidate that was probably meant, if one is similar enough.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let score = |candidate: &str| {
        if is_unit_of(candidate, name) || is_unit_of(name, candidate) {
            return 1.0;
        }
        strsim::normalized_damerau_levenshtein(&name.to_lowercase(), candidate)
    };
    candidates
        .into_iter()
        .map(|candidate| (score(candidate), candidate))
        .filter(|&(score, _)| score >= 0.6)
        // Among equals, take the shortest.
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.len().cmp(&a.1.len())))
        .map(|(_, candidate)| candidate)
}

/// `a, b, c`, without repetitions.
pub(crate) fn list<T: Into<String>>(items: impl IntoIterator<Item = T>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for item in items {
        let item = item.into();
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen.join(", ")
}
