//! `[radio.split]`.

use super::Radio;
use super::neighbours::Neighbour;
use crate::node::Node;
use crate::problem::Problems;
use crate::read::Fields;
use crate::spec::{AccessKind, SPLIT};
use crate::suggest::unknown_name;
use crate::value::Setting;

/// Reads the table, if the file has it.
pub(super) fn read(
    node: &Node,
    neighbours: &[Neighbour],
    problems: &mut Problems,
) -> Option<Fields> {
    node.get("split")?;
    let (origin, entries) = node.table("split", SPLIT.header, problems);
    let mut fields = Fields::read(&SPLIT, SPLIT.header, origin, entries, problems);
    if !fields.is_there("secondary") {
        match neighbours.first().and_then(|first| first.fields.text("name")) {
            Some(first) => fields.fill("secondary", Setting::Text(first.to_owned()), None),
            None => problems.add_with_help(
                &fields.origin,
                "a split bearer needs a second cell",
                "add [[radio.neighbour]]",
            ),
        }
    }
    fields.complete(problems);
    Some(fields)
}

/// Checks the names that the table uses, and what cannot be combined with it.
pub(super) fn check(radio: &Radio, any: bool, problems: &mut Problems) {
    let Some(split) = &radio.split else { return };
    if !any {
        super::timers::check(split, problems);
    }
    let cells: Vec<&str> = radio.cells().skip(1).collect();
    let ues: Vec<String> = radio.names().collect();
    let ues: Vec<&str> = ues.iter().map(String::as_str).collect();
    for (key, what, names) in [("secondary", "neighbour", &cells), ("ue", "UE", &ues)] {
        if let Some(name) = split.text(key).filter(|name| !names.contains(name)) {
            let names = names.iter().copied();
            unknown_name(key, what, name, names, split.origin_of(key), problems);
        }
    }
    let secondary = split.text("secondary");
    let secondary = radio.neighbours.iter().find(|it| it.fields.text("name") == secondary);
    for cell in [Some(&radio.cell), secondary.map(|it| &it.cell)].into_iter().flatten() {
        if matches!(cell.selected(), Some(AccessKind::Umts | AccessKind::Evdo)) {
            problems.add(&split.origin, "both cells of a split bearer must be LTE or NR");
        }
    }
    let stays = "handovers and radio link failure are not modelled for a UE with a split bearer";
    if let Some(handover) = radio.handovers.first() {
        problems.add_with_help(&handover.origin, stays, "remove [[radio.handover]]");
    }
    for key in ["a3", "link_failure"] {
        let mobility = radio.mobility.iter().filter(|it| it.flag(key) == Some(true));
        for mobility in mobility {
            let help = format!("set {key} = false");
            problems.add_with_help(mobility.origin_of(key), stays, help);
        }
    }
}
