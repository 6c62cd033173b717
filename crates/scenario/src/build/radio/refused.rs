//! Reports what the model itself refuses, at its place in the file.

use airpath_radio::cell::{CellConfig, CellConfigError};

use crate::Origin;
use crate::model::RadioConfig;
use crate::problem::Problems;
use crate::radio::{Radio, Tables};
use crate::read::Fields;

/// Checks each cell, and each UE in it, with the model.
pub(super) fn check(radio: &Radio, config: &RadioConfig, problems: &mut Problems) {
    let cells = std::iter::once(&radio.cell).chain(radio.neighbours.iter().map(|each| &each.cell));
    let mut works = true;
    for (fields, cell) in cells.zip(&config.ran.cells) {
        let alone = CellConfig { secondary: Vec::new(), ..cell.clone() };
        if let Err(error) = alone.check() {
            problems.add(place(fields, cell_keys(error)), error.to_string());
            works = false;
        }
    }
    works &= check_carriers(radio, &config.ran.cells[0], problems);
    if !works {
        // UEs are checked only once the cells are valid.
        return;
    }
    let mut configs = config.ran.ues.iter();
    for ue in &radio.ues {
        // All UEs of one table are alike.
        let Some(first) = configs.by_ref().take(ue.names().count()).reduce(|first, _| first) else {
            continue;
        };
        if let Err(error) = first.in_cell[0].check(&config.ran.cells[0]) {
            problems.add(ue_place(&ue.tables, error), error.to_string());
        }
    }
    let Some(any) = config.ran.ues.first() else { return };
    let there = any.in_cell.iter().zip(&config.ran.cells).skip(1);
    for (neighbour, (ue, cell)) in radio.neighbours.iter().zip(there) {
        if let Err(error) = ue.check(cell) {
            problems.add(ue_place(&neighbour.tables, error), error.to_string());
        }
    }
}

/// Checks the carriers of the first cell one after the other; returns whether they work.
fn check_carriers(radio: &Radio, cell: &CellConfig, problems: &mut Problems) -> bool {
    for (index, carrier) in radio.carriers.iter().enumerate() {
        let secondary = cell.secondary[..=index].to_vec();
        if let Err(error) = (CellConfig { secondary, ..cell.clone() }).check() {
            problems.add(place(&carrier.cell, cell_keys(error)), error.to_string());
            return false;
        }
    }
    true
}

/// The keys that may be at fault, the likeliest first.
fn cell_keys(error: CellConfigError) -> &'static [&'static str] {
    use CellConfigError as E;
    match error {
        E::NoDownlink { .. } => &["least_symbols_down", "control_symbols", "tdd_pattern"],
        E::NoUplink { .. } => &["least_symbols_up", "feedback_symbols", "tdd_pattern"],
        E::CarrierSubframes => &["tdd_configuration", "duplex"],
        E::Carriers { .. } | E::CarrierAccess => &[],
        _ => &["prbs_down", "prbs_up", "bandwidth_mhz"],
    }
}

fn ue_place(ue: &Tables, error: CellConfigError) -> &Origin {
    use CellConfigError as E;
    let (part, keys): (_, &[&str]) = match error {
        E::NoRequest => ("sr", &["period_ms"]),
        E::NoRequestOccasion => ("sr", &["offset_ms", "period_ms"]),
        E::NoRandomAccess => ("time_alignment", &["enabled"]),
        E::OnDuration { .. } => ("drx", &["on_duration_ms"]),
        E::RequestGrant(_) => ("grants", &["request_grant_bytes"]),
        E::SynchronousDownlink | E::SynchronousSlot { .. } | E::Processes(_) => ("harq", &[]),
        E::NoServingGrant | E::NoRoomForPdu { .. } => {
            let grants = ue.part("grants");
            let given = grants.given("serving_grant_bytes").is_some();
            let table = if given { "grants" } else { "rlc" };
            (table, &["serving_grant_bytes", "pdu_bytes"])
        }
        _ => ("bsr", &[]),
    };
    place(ue.part(part), keys)
}

fn place<'a>(fields: &'a Fields, keys: &[&str]) -> &'a Origin {
    keys.iter().find_map(|key| fields.given(key)).unwrap_or(&fields.origin)
}
