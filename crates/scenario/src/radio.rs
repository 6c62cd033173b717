//! `[radio]`: a preset, and what the file changes in it.

mod carriers;
pub(crate) mod check;
mod layers;
mod neighbours;
mod parts;
pub(crate) mod presets;
mod split;
mod timers;

use std::collections::BTreeMap;
use std::path::Path;

use crate::Origin;
use crate::node::{Entry, Node, Value};
use crate::problem::Problems;
use crate::read::Fields;
use crate::spec::{AccessKind, CELL, Chosen, HANDOVER, OUTAGE, RADIO, UE};
use crate::suggest::{list, unknown_name};
use crate::traces::Traces;
use crate::value::Setting;
pub(crate) use carriers::Carrier;
use layers::Layer;
pub(crate) use layers::Tables;
pub(crate) use neighbours::Neighbour;
use presets::Preset;

/// `[radio]`, complete.
pub(crate) struct Radio {
    /// The keys of `[radio]` itself.
    pub(crate) fields: Fields,
    /// `[radio.cell]`.
    pub(crate) cell: Fields,
    /// `[[radio.ue]]`, at least one.
    pub(crate) ues: Vec<Ue>,
    /// `[[radio.carrier]]`.
    pub(crate) carriers: Vec<Carrier>,
    /// `[[radio.neighbour]]`.
    pub(crate) neighbours: Vec<Neighbour>,
    /// `[[radio.handover]]`.
    pub(crate) handovers: Vec<Fields>,
    /// `[[radio.outage]]`.
    pub(crate) outages: Vec<Fields>,
    /// `[radio.mobility]`, complete, if UEs can move or fail.
    pub(crate) mobility: Option<Fields>,
    /// `[radio.split]`, complete, if the file has it.
    pub(crate) split: Option<Fields>,
}

/// A `[[radio.ue]]`.
pub(crate) struct Ue {
    /// Name and number.
    pub(crate) fields: Fields,
    /// The UE's tables in the first cell.
    pub(crate) tables: Tables,
}

impl Radio {
    /// Reads the table, if the file has one and its preset is known.
    pub(crate) fn read(
        root: &Node,
        directory: Option<&Path>,
        traces: &mut Traces,
        problems: &mut Problems,
    ) -> Option<Self> {
        let node = root.get("radio")?;
        let (origin, entries) = root.table("radio", RADIO.header, problems);
        if !matches!(node.value, Value::Table(_)) {
            return None;
        }
        let mut fields = Fields::read(&RADIO, RADIO.header, origin, entries, problems);
        fields.complete(problems);
        let preset = find_preset(&fields, problems)?;
        let cell = read_cell(node, "[radio.cell]", &preset, preset_name(&fields), problems);
        let tables = Layer::read(node, "radio", preset.access.text(), problems);
        tables.check_alone(&preset.tables, problems);
        let mut ues: Vec<Ue> = Vec::new();
        let mut names = BTreeMap::new();
        for (index, (origin, entries)) in ue_tables(node, problems).into_iter().enumerate() {
            let mut own = Fields::read(&UE, UE.header, origin, entries, problems);
            own.complete(problems);
            if own.text("name").is_none() {
                own.fill("name", Setting::Text(format!("ue-{index}")), None);
            }
            let table = Node { value: Value::Table(entries.to_vec()), origin: origin.clone() };
            let layer = Layer::read(&table, "radio.ue", preset.access.text(), problems);
            let mut tables = layers::combine(&[&layer, &tables], &preset.tables, problems);
            tables.load_channels(directory, traces, problems);
            let ue = Ue { fields: own, tables };
            check::names(&mut names, &ue, problems);
            ues.push(ue);
        }
        let carriers =
            carriers::read(node, &fields, (&preset, &tables), directory, traces, problems);
        let neighbours =
            neighbours::read(node, &fields, (&preset, &tables), directory, traces, problems);
        let handovers = neighbours::list(node, "handover", &HANDOVER, problems);
        let outages = neighbours::list(node, "outage", &OUTAGE, problems);
        let split = split::read(node, &neighbours, problems);
        let moves = !neighbours.is_empty() && handovers.is_empty() && split.is_none();
        let mobility = match node.get("mobility").is_some() || !neighbours.is_empty() {
            true => Some(neighbours::mobility(node, moves, split.is_none(), problems)),
            false => None,
        };
        let radio =
            Self { fields, cell, ues, carriers, neighbours, handovers, outages, mobility, split };
        check::radio(&radio, problems);
        Some(radio)
    }

    /// Names of all UEs; a table with a count has several.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.ues.iter().flat_map(Ue::names)
    }

    /// Index of a UE among [`names`](Self::names).
    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.names().position(|known| known == name)
    }

    /// The table that defines the UE of that name.
    pub(crate) fn ue(&self, name: &str) -> Option<&Ue> {
        self.ues.iter().find(|ue| ue.names().any(|known| known == name))
    }
}

impl Ue {
    /// The UE's name; with a count, the names of all its UEs.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        let name = self.fields.text("name").unwrap_or_default().to_owned();
        let count = self.fields.count("count");
        (0..count.unwrap_or(1)).map(move |index| match count {
            Some(_) => format!("{name}-{index}"),
            None => name.clone(),
        })
    }
}

/// Gives a flow the UE that it names, otherwise the first.
pub(crate) fn choose_ue(radio: Option<&Radio>, flow: &mut Fields, problems: &mut Problems) {
    match (radio, flow.text("ue")) {
        (None, None) => {}
        (None, Some(_)) => problems.add_with_help(
            flow.origin_of("ue"),
            "`ue` needs a radio",
            "add [radio] with a preset, or remove `ue`",
        ),
        (Some(radio), None) => {
            if let Some(first) = radio.names().next() {
                flow.fill("ue", Setting::Text(first), None);
            }
        }
        (Some(radio), Some(name)) => {
            if radio.index(name).is_none() {
                let names: Vec<String> = radio.names().collect();
                let names = names.iter().map(String::as_str);
                unknown_name("ue", "UE", name, names, flow.origin_of("ue"), problems);
            }
        }
    }
}

fn preset_name(fields: &Fields) -> &str {
    fields.text("preset").unwrap_or_default()
}

fn find_preset(fields: &Fields, problems: &mut Problems) -> Option<Preset> {
    let name = fields.text("preset")?;
    let found = presets::find(name);
    if found.is_none() {
        let names = presets::BUILT_IN.iter().map(|&(name, _)| name);
        unknown_name("preset", "preset", name, names, fields.origin_of("preset"), problems);
    }
    found
}

fn read_cell(
    node: &Node,
    header: &str,
    preset: &Preset,
    name: &str,
    problems: &mut Problems,
) -> Fields {
    let (origin, entries) = node.table("cell", header, problems);
    let own = preset.access.text();
    let mut cell = Fields::read_variant(&CELL, own, header, origin, entries, problems);
    if let Some(access) = cell.chosen::<AccessKind>()
        && access != preset.access
    {
        let said = access.text();
        problems.add_with_help(
            cell.origin_of(AccessKind::KEY),
            format!("`access` is \"{said}\", but the preset \"{name}\" is \"{own}\""),
            format!("presets with access = \"{said}\": {}", list(presets::with(access))),
        );
    }
    layers::expand_mu(&mut cell, problems);
    cell.inherit(&preset.cell);
    cell.complete(problems);
    cell
}

/// Tables of the UEs. Without a list there is one UE, which uses the tables of `[radio]`.
fn ue_tables<'a>(node: &'a Node, problems: &mut Problems) -> Vec<(&'a Origin, &'a [Entry])> {
    match node.get("ue") {
        None => vec![(&node.origin, &[])],
        Some(list) => {
            let tables = node.tables("ue", UE.header, problems);
            if matches!(&list.value, Value::List(items) if items.is_empty()) {
                problems.add_with_help(
                    &list.origin,
                    "a radio needs at least one [[radio.ue]]",
                    "without `ue` there is one, with the tables of [radio]",
                );
            }
            tables
        }
    }
}
