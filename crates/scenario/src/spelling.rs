//! Old spellings of keys. A key that was renamed, as `frto` to `recovery.frto`, still works under
//! its old name, and a warning gives the new one.

use std::fmt;

use crate::Origin;
use crate::node::{Entry, Node, Value};
use crate::problem::Problems;
use crate::spec::{EMULATION, FLOW, Key, PROFILE, PROGRAM, STAGE, Table};

/// An old spelling that the scenario uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it is used first.
    pub origin: Origin,
    /// The old name of the key.
    pub old: &'static str,
    /// The current name of the key.
    pub new: &'static str,
    /// How many more times the scenario uses the old spelling.
    pub more: usize,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, old, new, more } = self;
        write!(f, "{origin}: `{old}` is now `{new}`; the old spelling still works")?;
        match more {
            0 => Ok(()),
            1 => write!(f, " (1 more place)"),
            _ => write!(f, " ({more} more places)"),
        }
    }
}

/// Collects warnings, one for each old spelling.
#[derive(Default)]
pub(crate) struct Warnings(Vec<Warning>);

impl Warnings {
    fn add(&mut self, origin: &Origin, old: &'static str, new: &'static str) {
        match self.0.iter_mut().find(|known| known.old == old) {
            Some(known) => known.more += 1,
            None => self.0.push(Warning { origin: origin.clone(), old, new, more: 0 }),
        }
    }

    /// All of them, in the order in which they were found.
    pub(crate) fn into_vec(self) -> Vec<Warning> {
        self.0
    }
}

/// Gives every key of the document its current name. A key given in both spellings is a problem.
pub(crate) fn renew(root: &mut Node, warnings: &mut Warnings, problems: &mut Problems) {
    let Value::Table(entries) = &mut root.value else { return };
    for Entry { key, node, .. } in entries {
        if key == "emulation" {
            renew_table(&EMULATION, node, warnings, problems);
            continue;
        }
        match (key.as_str(), &mut node.value) {
            ("flow", Value::List(flows)) => {
                flows.iter_mut().for_each(|flow| renew_table(&FLOW, flow, warnings, problems));
            }
            ("profile", Value::Table(profiles)) => profiles.iter_mut().for_each(|profile| {
                renew_table(&PROFILE, &mut profile.node, warnings, problems);
            }),
            ("path", Value::Table(directions)) => {
                let lists = directions.iter_mut().filter_map(|entry| match &mut entry.node.value {
                    Value::List(stages) => Some(stages),
                    _ => None,
                });
                lists.flatten().for_each(|stage| renew_table(&STAGE, stage, warnings, problems));
            }
            _ => {}
        }
    }
}

fn renew_table(
    table: &'static Table,
    node: &mut Node,
    warnings: &mut Warnings,
    problems: &mut Problems,
) {
    let Value::Table(entries) = &mut node.value else { return };
    let mut at = 0;
    while at < entries.len() {
        let Some((key, old)) = renamed(table, &entries[at].key, &entries[at].node.value) else {
            at += 1;
            continue;
        };
        let entry = entries.remove(at);
        warnings.add(&entry.origin, old, key.name);
        let (inner, leaf) = match key.name.split_once('.') {
            Some((subtable, leaf)) => (subtable_of(entries, subtable, &entry.origin), leaf),
            None => (&mut *entries, key.name),
        };
        match inner.iter().find(|known| known.key == leaf) {
            Some(known) => problems.add_with_help(
                &entry.origin,
                format!("`{old}` and `{}` are two spellings of one key", key.name),
                format!("`{}` is at {}; remove `{old}`", key.name, known.origin),
            ),
            None => inner.push(Entry { key: leaf.to_owned(), ..entry }),
        }
    }
}

/// The entries of a subtable, which is created if it is missing.
fn subtable_of<'a>(entries: &'a mut Vec<Entry>, name: &str, origin: &Origin) -> &'a mut Vec<Entry> {
    let found = entries
        .iter()
        .position(|entry| entry.key == name && matches!(entry.node.value, Value::Table(_)));
    let at = found.unwrap_or_else(|| {
        let node = Node { value: Value::Table(Vec::new()), origin: origin.clone() };
        entries.push(Entry { key: name.to_owned(), origin: origin.clone(), node });
        entries.len() - 1
    });
    match &mut entries[at].node.value {
        Value::Table(inner) => inner,
        _ => unreachable!("it was found by being a table, or was made as one"),
    }
}

/// The key that `name` means if it is an old spelling, and that spelling. `pacing`, which was a
/// key, is now a table: the type of its value tells which of the two is meant.
pub(crate) fn renamed(
    table: &'static Table,
    name: &str,
    value: &Value,
) -> Option<(&'static Key, &'static str)> {
    if table.find(name, None).is_some()
        || (table.has_subtable(name) && matches!(value, Value::Table(_)))
    {
        return None;
    }
    let key = table.find_old(name)?;
    Some((key, key.old?))
}

/// Replaces an old spelling in a path of `--set`.
pub(crate) fn renew_path(
    path: &mut Vec<String>,
    value: &Value,
    origin: &Origin,
    warnings: &mut Warnings,
) {
    let Some((table, depth)) = table_of(path) else { return };
    if path.len() != depth + 1 {
        return;
    }
    if let Some((key, old)) = renamed(table, &path[depth], value) {
        warnings.add(origin, old, key.name);
        path.truncate(depth);
        path.extend(key.name.split('.').map(str::to_owned));
    }
}

/// The table whose key a path names, and the position in the path at which the key begins.
pub(crate) fn table_of(path: &[String]) -> Option<(&'static Table, usize)> {
    match path.first()?.as_str() {
        "flow" => Some((&FLOW, 2)),
        "emulation" => Some((&EMULATION, 1)),
        "program" => Some((&PROGRAM, 2)),
        "profile" => Some((&PROFILE, 2)),
        "path" => Some((&STAGE, 3)),
        _ => None,
    }
}
