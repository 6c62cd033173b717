//! What the model itself refuses, with its place in the file.

use airpath_path::radio::cell::CellConfigError;

use super::{Radio, Ue};
use crate::Origin;
use crate::model::RadioConfig;
use crate::problem::Problems;
use crate::read::Fields;

/// Asks the model about the cell and each UE.
pub(super) fn check(radio: &Radio, config: &RadioConfig, problems: &mut Problems) {
    if let Err(error) = config.cell.check() {
        problems.add(place(&radio.cell, cell_keys(error)), error.to_string());
        // UEs are checked in a cell that works.
        return;
    }
    let mut configs = config.ues.iter();
    for ue in &radio.ues {
        // Those of one table are alike.
        let Some(first) = configs.by_ref().take(ue.names().count()).reduce(|first, _| first) else {
            continue;
        };
        if let Err(error) = first.config.check(&config.cell) {
            problems.add(ue_place(ue, error), error.to_string());
        }
    }
}

/// The keys that can be at fault, the likeliest first.
fn cell_keys(error: CellConfigError) -> &'static [&'static str] {
    use CellConfigError as E;
    match error {
        E::NoDownlink { .. } => &["least_symbols_down", "control_symbols", "tdd_pattern"],
        E::NoUplink { .. } => &["least_symbols_up", "feedback_symbols", "tdd_pattern"],
        _ => &["prbs_down", "prbs_up", "bandwidth_mhz"],
    }
}

fn ue_place(ue: &Ue, error: CellConfigError) -> &Origin {
    use CellConfigError as E;
    let (part, keys): (_, &[&str]) = match error {
        E::NoRequest => ("sr", &["period_ms"]),
        E::NoRandomAccess => ("time_alignment", &["enabled"]),
        E::OnDuration { .. } => ("drx", &["on_duration_ms"]),
        E::RequestGrant(_) => ("grants", &["request_grant_bytes"]),
        E::SynchronousDownlink | E::SynchronousSlot { .. } => ("harq", &[]),
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
