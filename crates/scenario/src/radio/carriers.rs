//! `[[radio.carrier]]`.

use std::path::Path;

use super::layers::{self, Layer, Tables};
use super::presets::Preset;
use super::{find_preset, preset_name, read_cell};
use crate::node::{Node, Value};
use crate::problem::Problems;
use crate::read::Fields;
use crate::spec::{CARRIER, Chosen};
use crate::traces::Traces;
use crate::value::Setting;

/// A secondary carrier of the first cell.
pub(crate) struct Carrier {
    /// Preset and directions.
    pub(crate) fields: Fields,
    /// The carrier's `cell` table.
    pub(crate) cell: Fields,
    /// The tables that every UE has on it.
    pub(crate) tables: Tables,
}

impl Carrier {
    /// The `cell` table without the keys that are the primary carrier's.
    pub(crate) fn own_cell(&self) -> Fields {
        let mut cell = self.cell.clone();
        PRIMARY_ONLY.into_iter().for_each(|key| cell.remove(key));
        cell
    }

    /// The tables that the file can set.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &(&'static str, Fields)> {
        let keys = || CARRIER.groups.iter().flat_map(|group| group.keys);
        self.tables.parts.iter().filter(move |(name, _)| keys().any(|key| key.name == *name))
    }
}

/// Keys of `[radio.cell]` that are about the base station or its primary carrier.
const PRIMARY_ONLY: [&str; 4] =
    ["processing_down_ms", "processing_up_ms", "processing_grant_ms", "k0_slots"];

/// Reads the secondary carriers of the cell that has these tables.
pub(super) fn read(
    node: &Node,
    radio: &Fields,
    (preset, tables): (&Preset, &Layer),
    directory: Option<&Path>,
    traces: &mut Traces,
    problems: &mut Problems,
) -> Vec<Carrier> {
    let mut carriers = Vec::new();
    for (origin, entries) in node.tables("carrier", CARRIER.header, problems) {
        let mut fields = Fields::read(&CARRIER, CARRIER.header, origin, entries, problems);
        fields.complete(problems);
        if !fields.is_there("preset") {
            fields.fill("preset", Setting::Text(preset_name(radio).to_owned()), None);
        }
        let Some(own) = find_preset(&fields, problems) else { continue };
        if own.access != preset.access {
            problems.add_with_help(
                fields.origin_of("preset"),
                format!(
                    "the carrier is \"{}\", but the cell is \"{}\"",
                    own.access.text(),
                    preset.access.text()
                ),
                "carriers of one cell have the same `access`; for LTE and NR use two cells, [[radio.neighbour]] and \
                 [radio.split]",
            );
            continue;
        }
        let table = Node { value: Value::Table(entries.to_vec()), origin: origin.clone() };
        let name = preset_name(&fields);
        let cell = read_cell(&table, "[radio.carrier.cell]", &own, name, problems);
        for key in PRIMARY_ONLY {
            if let Some(place) = table.get("cell").and_then(|cell| cell.get(key)) {
                problems.add_with_help(
                    &place.origin,
                    format!("`{key}` is the same for all carriers"),
                    "set it in [radio.cell]",
                );
            }
        }
        let layer = Layer::read(&table, "radio.carrier", own.access.text(), problems);
        let mut combined = layers::combine(&[&layer, tables], &own.tables, problems);
        combined.load_channels(directory, traces, problems);
        carriers.push(Carrier { fields, cell, tables: combined });
    }
    carriers
}
