//! The built-in radio presets, as data.

use super::layers::{self, Layer};
use super::parts::part_keys;
use crate::node::{Node, Value};
use crate::problem::Problems;
use crate::read::Fields;
use crate::spec::{AccessKind, CELL, Chosen};

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../presets/", $name, ".toml")))),*]
    };
}

/// Name and text of each preset. The first line of the text is its description.
pub(crate) const BUILT_IN: &[(&str, &str)] = presets![
    "nr-n78",
    "nr-fdd-20",
    "nr-mmwave",
    "nr-private-drx",
    "nr-indoor",
    "lte-5",
    "lte-10",
    "lte-20",
    "lte-tdd-20",
    "lte-2012",
    "umts-r99",
    "umts-hspa",
    "umts-hspa-plus",
    "evdo-rev-a",
];

/// Name and description of each preset of `[radio]`.
pub fn radio_presets() -> impl Iterator<Item = (&'static str, &'static str)> {
    BUILT_IN.iter().map(|&(name, text)| {
        // A test ensures that the comment exists.
        let description = text.lines().next().unwrap_or_default();
        (name, description.trim_start_matches('#').trim())
    })
}

/// A preset. It need not be complete: keys that it does not give keep their defaults.
pub(crate) struct Preset {
    /// The cell's `access`, which decides which keys exist.
    pub(super) access: AccessKind,
    /// `[cell]`.
    pub(super) cell: Fields,
    /// The other tables.
    pub(super) tables: Layer,
}

/// The preset of that name.
pub(super) fn find(name: &str) -> Option<Preset> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(name, text)| built_in(name, text))
}

/// Names of the presets with this `access`.
pub(super) fn with(access: AccessKind) -> impl Iterator<Item = &'static str> {
    BUILT_IN
        .iter()
        .filter(move |(name, text)| built_in(name, text).access == access)
        .map(|&(name, _)| name)
}

/// A built-in preset. Panics if something is wrong with it: a test reads each of them.
fn built_in(name: &str, text: &str) -> Preset {
    let mut problems = Problems::default();
    let root = Node::parse(&format!("preset {name}"), text, &mut problems);
    let cell = root.get("cell");
    let access = match cell.and_then(|cell| cell.get(AccessKind::KEY)).map(|access| &access.value) {
        Some(Value::Text(access)) => AccessKind::of(access),
        _ => None,
    };
    let access = access.unwrap_or_else(|| panic!("preset {name} has no access"));
    let variant = access.text();
    let (origin, entries) = root.table("cell", "[cell]", &mut problems);
    let mut cell = Fields::read_variant(&CELL, variant, "[cell]", origin, entries, &mut problems);
    layers::expand_mu(&mut cell, &mut problems);
    for entry in root.entries() {
        if entry.key != "cell" && !part_keys().any(|(known, _)| known == entry.key) {
            problems.add(&entry.origin, format!("a preset has no table `{}`", entry.key));
        }
    }
    let tables = Layer::read(&root, "", variant, &mut problems);
    if let Err(error) = problems.finish() {
        panic!("preset {name}: {error}");
    }
    Preset { access, cell, tables }
}
