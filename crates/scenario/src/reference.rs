//! The reference of scenario files in Markdown, generated from the tables that the checks use.

use std::fmt::Write as _;

use crate::profiles::{self, built_in};
use crate::radio::presets;
use crate::shipped::shipped;
use crate::spec::{
    CARRIER, CELL, CORE, Default, EMULATION, FLOW, Group, HANDOVER, Key, Kind, MOBILITY, NEIGHBOUR,
    Need, OUTAGE, PARTS, PATH, PROFILE, PROGRAM, Privacy, RADIO, ROOT, RUN, Rule, SPLIT, STAGE,
    SUBTABLES, Table, UE,
};
use crate::traces;
use crate::value::toml_value;

/// The whole reference.
pub fn reference_markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    for table in [
        &ROOT, &RUN, &EMULATION, &CORE, &PATH, &STAGE, &FLOW, &PROGRAM, &PROFILE, &RADIO, &UE,
        &CELL,
    ] {
        section(&mut out, table);
    }
    for part in PARTS {
        section(&mut out, part.table);
    }
    for table in [&CARRIER, &NEIGHBOUR, &HANDOVER, &OUTAGE, &MOBILITY, &SPLIT] {
        section(&mut out, table);
    }
    built_in_presets(&mut out);
    built_in_profiles(&mut out);
    built_in_traces(&mut out);
    shipped_scenarios(&mut out);
    out
}

const INTRODUCTION: &str = "\
<!-- Generated from crates/scenario/src/spec; rewrite it with
     AIRPATH_BLESS=1 cargo test -p airpath-scenario reference -->

# Scenario files

A scenario is a TOML file that describes one experiment completely. Start with [the ten keys you will
use](../guides/ten-keys.md); this page has all keys. `airpath scenario check FILE` reports what is
wrong with a scenario, and `airpath scenario schema` prints a JSON schema for editors.

Units are in the keys' names: `_ms`, `_s`, `_mbps` (10^6 bits per second), `_bytes`, `_segments`,
`_packets`, `_slots`, `_symbols`, `_subframes`, `_mhz`, `_khz`, `_db`, `_dbm`, `_m`, `_kmh`. Times are
exact to the nanosecond, rates to the bit per second.

Every key can be set from the command line with `--set KEY=VALUE`. KEY is the key's dotted path, in which
the elements of a list are counted from 0: `--set run.duration_s=10`, `--set path.down.0.rate_mbps=1.35`,
`--set flow.0.congestion=reno`. VALUE is a TOML value; anything else is a string. It replaces the value in
the file. If a key is set twice, the last value wins. `--set` cannot add elements to a list. A name with
dots needs quotes: `--set 'profile.\"my-10.5\".options.sack=false'`. Instead of an index, `*` means every
element of the list to which the key applies: `--set 'flow.*.congestion=bbr'`, `--set 'program.*.enabled=false'`.
`stage.*` means every stage of both directions.

Less common keys of a TCP endpoint are in tables of their own, such as `recovery` and `ack`.
They can be written in three ways: `recovery.frto = true` in `[[flow]]`, `recovery = { frto = true }`, or
`frto = true` under `[flow.recovery]`, after the flow's other keys.
";

fn section(out: &mut String, table: &Table) {
    let title = match table.path {
        "" => "The top level".to_owned(),
        _ => table.header.split(" and ").map(code).collect::<Vec<_>>().join(" and "),
    };
    write(out, format_args!("\n## {title}\n\n{}\n", table.doc));
    if !table.path.is_empty() {
        write(out, format_args!("For `--set`: {}.\n", set_paths(table.path)));
    }
    let Some(selector) = table.selector else {
        keys_and_those_of_a_flow(out, table, table.groups.iter());
        return;
    };
    let always = || table.groups.iter().filter(|group| group.variants.is_empty());
    if always().next().is_some() {
        write(out, format_args!("\n### For every `{selector}`\n"));
        keys(out, always());
    }
    // Groups with the same variants share a heading, in the order of their first appearance.
    let mut shown: Vec<&[&str]> = Vec::new();
    for group in table.groups.iter().filter(|group| !group.variants.is_empty()) {
        if shown.contains(&group.variants) {
            continue;
        }
        shown.push(group.variants);
        let values: Vec<String> =
            group.variants.iter().map(|value| code(format!("{value:?}"))).collect();
        write(out, format_args!("\n### {selector} = {}\n", values.join(" or ")));
        if let [only] = group.variants
            && let Some(choice) = table.variants().iter().find(|choice| choice.value == *only)
        {
            write(out, format_args!("\n{}\n", choice.doc));
        }
        if group.rule == Rule::ExactlyOne {
            write(out, format_args!("\nExactly one of these keys.\n"));
        }
        let these = table.groups.iter().filter(|other| other.variants == group.variants);
        keys_and_those_of_a_flow(out, table, these);
    }
}

/// The other keys of a profile or a proxy are those of a flow: list them once.
fn keys_and_those_of_a_flow<'a>(
    out: &mut String,
    table: &Table,
    groups: impl Iterator<Item = &'a Group>,
) {
    let texts = |group: &'a Group| group.keys.iter().map(|key| (key.name, key.doc));
    let shared = |group: &&'a Group| {
        table.path != FLOW.path && FLOW.groups.iter().any(|flow| texts(flow).eq(texts(group)))
    };
    let (shared, own): (Vec<_>, Vec<_>) = groups.partition(shared);
    keys(out, own.into_iter());
    for group in shared {
        let flat: Vec<_> = group.keys.iter().filter(|key| key.subtable().is_none()).collect();
        let mut tables: Vec<String> = Vec::new();
        for table in group.keys.iter().filter_map(Key::subtable).map(code) {
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        let flat = match flat[..] {
            [] => Vec::new(),
            [only] => vec![format!("the key `{}`", only.name)],
            [first, .., last] => vec![format!("the keys from `{}` to `{}`", first.name, last.name)],
        };
        let tables = match &tables[..] {
            [] => Vec::new(),
            [only] => vec![format!("the keys of {only}")],
            _ => vec![format!("the keys of {}", tables.join(", "))],
        };
        let all = [flat, tables].concat().join(", and ");
        write(out, format_args!("\nAnd, of a TCP flow, {all}.\n"));
    }
}

fn keys<'a>(out: &mut String, groups: impl Iterator<Item = &'a Group>) {
    let keys: Vec<&Key> = groups.flat_map(|group| group.keys).collect();
    let (flat, nested): (Vec<_>, Vec<_>) =
        keys.into_iter().partition(|key| key.subtable().is_none());
    if !flat.is_empty() || nested.is_empty() {
        rows(out, flat.into_iter());
    }
    for table in SUBTABLES {
        let mut own = nested.iter().copied().filter(|key| key.subtable() == Some(table.name));
        if let Some(first) = own.next() {
            write(out, format_args!("\n#### `{}`\n\n{}\n", table.name, table.doc));
            rows(out, std::iter::once(first).chain(own));
        }
    }
}

fn rows<'a>(out: &mut String, keys: impl Iterator<Item = &'a Key>) {
    write(out, format_args!("\n| key | value | default | meaning |\n|---|---|---|---|\n"));
    for key in keys {
        let (value, default, meaning) = (value(key), default(key), meaning(key));
        write(out, format_args!("| `{}` | {value} | {default} | {meaning} |\n", key.name));
    }
}

fn value(key: &Key) -> String {
    let range = key.kind.range();
    match key.kind {
        Kind::Text => "string on one line".to_owned(),
        Kind::Name => "string: 1 to 64 letters, digits, `.`, `_`, `-`".to_owned(),
        Kind::Choice(choices) => {
            let values: Vec<String> =
                choices.iter().map(|choice| code(format!("{:?}", choice.value))).collect();
            values.join(", ")
        }
        Kind::Flag => "`true`, `false`".to_owned(),
        Kind::Count { .. } => format!("whole number {range}"),
        Kind::Time { .. } | Kind::Rate => format!("number {range}"),
        Kind::Fraction | Kind::Real { .. } => format!("number {range}"),
        Kind::OrWord { word, kind } => {
            format!("{}, {}", code(format!("{word:?}")), value(&Key { kind: *kind, ..*key }))
        }
        Kind::Preset => "name of a preset".to_owned(),
        Kind::File => "file name".to_owned(),
        Kind::Profile => "name of a profile".to_owned(),
        Kind::Table => "table".to_owned(),
        Kind::List => "list of tables".to_owned(),
    }
}

fn default(key: &Key) -> String {
    match key.default {
        Default::Required => "required".to_owned(),
        Default::Value(value) => code(value),
        Default::Absent(meaning) | Default::Derived(meaning) => meaning.to_owned(),
        Default::Inherited => "the profile's".to_owned(),
        Default::Preset => "the preset's".to_owned(),
    }
}

fn meaning(key: &Key) -> String {
    let mut text = key.doc.to_owned();
    if let Kind::Choice(choices) = key.kind {
        for choice in choices {
            text.push_str(&format!(" {}: {}", code(format!("{:?}", choice.value)), choice.doc));
        }
    }
    match key.needs {
        Some(Need::Is(other, value)) => {
            text.push_str(&format!(" Only with {}.", code(format!("{other} = {value:?}"))));
        }
        Some(Need::Begins(other, start)) => {
            text.push_str(&format!(" Only with {}.", code(format!("{other} = \"{start}…\""))));
        }
        Some(Need::Given(other)) => text.push_str(&format!(" Only with `{other}`.")),
        Some(Need::Not(other, value)) => {
            text.push_str(&format!(" Not with {}.", code(format!("{other} = {value:?}"))));
        }
        // The flag itself says so.
        Some(Need::On(_)) => {}
        None => {}
    }
    if key.privacy == Privacy::Secret {
        text.push_str(" Secret: what a run writes has its hash.");
    }
    if let Some(enumeration) = key.enumeration {
        text.push_str(&format!(" RRC: {enumeration}."));
    }
    if !key.excludes.is_empty() {
        let others: Vec<String> = key.excludes.iter().map(code).collect();
        text.push_str(&format!(" Not together with {}.", others.join(" or ")));
    }
    text
}

fn built_in_profiles(out: &mut String) {
    write(out, format_args!("\n## Built-in profiles\n\n"));
    let profiles: Vec<_> = profiles::BUILT_IN
        .iter()
        .map(|(name, text)| (*name, *text, built_in(name, text)))
        .collect();
    for (name, text, _) in &profiles {
        write(out, format_args!("- `{name}`: {}\n", first_comment(text)));
    }
    let names: Vec<String> = profiles.iter().map(|(name, ..)| code(name)).collect();
    write(
        out,
        format_args!("\n| key | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len())),
    );
    for key in PROFILE.keys(None) {
        let values: Vec<String> = profiles
            .iter()
            .map(|(.., fields)| {
                fields
                    .setting(key.name)
                    .map_or_else(String::new, |each| code(toml_value(key, each)))
            })
            .collect();
        if values.iter().any(|value| !value.is_empty()) {
            write(out, format_args!("| `{}` | {} |\n", key.name, values.join(" | ")));
        }
    }
    write(
        out,
        format_args!(
            "\nThe files in `crates/scenario/profiles/` give the reason for each value.\n"
        ),
    );
}

fn built_in_presets(out: &mut String) {
    write(
        out,
        format_args!(
            "\n## Presets of the radio\n\nA key that a preset leaves out has its default. \
             `assumed` marks a value for which there is no source.\n"
        ),
    );
    for (name, text) in presets::BUILT_IN {
        let (_, tables) = text.split_once('\n').unwrap_or_default();
        write(
            out,
            format_args!("\n### `{name}`\n\n{}\n\n```toml\n{tables}```\n", first_comment(text)),
        );
    }
}

fn built_in_traces(out: &mut String) {
    write(out, format_args!("\n## Built-in traces\n\n"));
    for (name, description, _) in traces::BUILT_IN {
        write(out, format_args!("- `builtin:{name}`: {description}\n"));
    }
}

fn shipped_scenarios(out: &mut String) {
    write(out, format_args!("\n## Shipped scenarios\n\nRun them by name: `airpath run wire`.\n\n"));
    for (name, text) in shipped() {
        let title = text.lines().find_map(|line| line.strip_prefix("title = "));
        write(out, format_args!("- `{name}`: {}\n", title.unwrap_or_default().trim_matches('"')));
    }
}

/// The first line of a file, which is a comment.
fn first_comment(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
}

fn set_paths(path: &str) -> String {
    path.split(" or ").map(|path| code(format!("{path}.KEY"))).collect::<Vec<_>>().join(" or ")
}

fn code(text: impl std::fmt::Display) -> String {
    format!("`{text}`")
}

fn write(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("writing to a string does not fail");
}
