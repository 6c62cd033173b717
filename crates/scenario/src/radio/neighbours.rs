//! `[[radio.neighbour]]`, `[[radio.handover]]` and `[radio.mobility]`.

use std::path::Path;

use super::layers::{self, Layer, Tables};
use super::presets::Preset;
use super::{Radio, find_preset, preset_name, read_cell};
use crate::node::{Node, Value};
use crate::problem::Problems;
use crate::read::Fields;
use crate::spec::{Chosen, MOBILITY, NEIGHBOUR, Table};
use crate::suggest::unknown_name;
use crate::traces::Traces;
use crate::value::Setting;

/// A neighbouring cell.
pub(crate) struct Neighbour {
    /// Name and preset.
    pub(crate) fields: Fields,
    /// The neighbour's `cell` table.
    pub(crate) cell: Fields,
    /// The tables that every UE has in this cell.
    pub(crate) tables: Tables,
}

impl Radio {
    /// Names of all cells.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &str> {
        let own = self.fields.text("name");
        let others = self.neighbours.iter().map(|each| each.fields.text("name"));
        std::iter::once(own).chain(others).map(Option::unwrap_or_default)
    }
}

/// Reads the neighbours of the cell that has these tables.
pub(super) fn read(
    node: &Node,
    radio: &Fields,
    (preset, tables): (&Preset, &Layer),
    directory: Option<&Path>,
    traces: &mut Traces,
    problems: &mut Problems,
) -> Vec<Neighbour> {
    let mut neighbours: Vec<Neighbour> = Vec::new();
    for (origin, entries) in node.tables("neighbour", NEIGHBOUR.header, problems) {
        let mut fields = Fields::read(&NEIGHBOUR, NEIGHBOUR.header, origin, entries, problems);
        fields.complete(problems);
        if !fields.is_there("name") {
            let name = format!("cell-{}", neighbours.len() + 1);
            fields.fill("name", Setting::Text(name), None);
        }
        if !fields.is_there("preset") {
            fields.fill("preset", Setting::Text(preset_name(radio).to_owned()), None);
        }
        let Some(own) = find_preset(&fields, problems) else { continue };
        let table = Node { value: Value::Table(entries.to_vec()), origin: origin.clone() };
        let name = preset_name(&fields);
        let cell = read_cell(&table, "[radio.neighbour.cell]", &own, name, problems);
        let layer = Layer::read(&table, "radio.neighbour", own.access.text(), problems);
        let mut combined = match own.access == preset.access {
            true => layers::combine(&[&layer, tables], &own.tables, problems),
            false => layers::combine(&[&layer], &own.tables, problems),
        };
        // A UE keeps its host, whichever cell it is in.
        combined.parts.retain(|(name, _)| !name.starts_with("host_link"));
        combined.load_channels(directory, traces, problems);
        let names = neighbours.iter().map(|other| &other.fields).chain([radio]);
        for other in names.filter(|other| other.text("name") == fields.text("name")) {
            problems.add_with_help(
                fields.origin_of("name"),
                format!("two cells have the name {:?}", fields.text("name").unwrap_or_default()),
                format!("the other one is at {}", other.origin_of("name")),
            );
        }
        neighbours.push(Neighbour { fields, cell, tables: combined });
    }
    neighbours
}

/// Reads a list of tables without variants, such as planned handovers.
pub(super) fn list(
    node: &Node,
    name: &str,
    table: &'static Table,
    problems: &mut Problems,
) -> Vec<Fields> {
    let mut list = Vec::new();
    for (origin, entries) in node.tables(name, table.header, problems) {
        let mut fields = Fields::read(table, table.header, origin, entries, problems);
        fields.complete(problems);
        list.push(fields);
    }
    list
}

/// Reads how UEs move. Unless the table says otherwise, they move by event A3 if `moves`, and their
/// links fail if `fails`.
pub(super) fn mobility(node: &Node, moves: bool, fails: bool, problems: &mut Problems) -> Fields {
    let (origin, entries) = node.table("mobility", MOBILITY.header, problems);
    let mut fields = Fields::read(&MOBILITY, MOBILITY.header, origin, entries, problems);
    for (key, usual) in [("a3", moves), ("link_failure", fails)] {
        if !fields.is_there(key) {
            fields.fill(key, Setting::Flag(usual), None);
        }
    }
    fields.complete(problems);
    fields
}

/// Checks the names that handovers and outages use, and which keys of mobility cannot be combined.
pub(super) fn check(radio: &Radio, problems: &mut Problems) {
    for planned in radio.handovers.iter().chain(&radio.outages) {
        let cells: Vec<&str> = radio.cells().collect();
        let ues: Vec<String> = radio.names().collect();
        let ues: Vec<&str> = ues.iter().map(String::as_str).collect();
        for (key, what, names) in
            [("to", "cell", &cells), ("cell", "cell", &cells), ("ue", "UE", &ues)]
        {
            let Some(name) = planned.text(key).filter(|name| !names.contains(name)) else {
                continue;
            };
            let (names, origin) = (names.iter().copied(), planned.origin_of(key));
            unknown_name(key, what, name, names, origin, problems);
        }
    }
    let Some(mobility) = &radio.mobility else { return };
    if let (Some(out), Some(into)) = (mobility.real("q_out_db"), mobility.real("q_in_db"))
        && out > into
    {
        let place = mobility.given("q_out_db").unwrap_or(mobility.origin_of("q_in_db"));
        problems.add(place, format!("`q_out_db` ({out}) is larger than `q_in_db` ({into})"));
    }
    for neighbour in &radio.neighbours {
        for part in ["rlc", "rlc_up"] {
            let mode = |fields: &Fields| match fields.text("mode") {
                Some(mode) => format!("is {mode:?}"),
                None => "has no mode".to_owned(),
            };
            let there = neighbour.tables.part(part);
            let differs = |here: &&Fields| mode(here) != mode(there);
            let Some(here) = radio.ues.iter().map(|ue| ue.tables.part(part)).find(differs) else {
                continue;
            };
            problems.add_with_help(
                there.given("mode").unwrap_or(here.origin_of("mode")),
                format!(
                    "RLC {} in one cell and {} in the cell {:?}",
                    mode(here),
                    mode(there),
                    neighbour.fields.text("name").unwrap_or_default()
                ),
                "a bearer keeps its mode: set the same mode in both",
            );
            break;
        }
    }
}
