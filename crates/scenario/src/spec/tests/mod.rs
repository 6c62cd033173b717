//! Tests that the tables agree with the code that reads them.

mod choices;
mod key_names;

use super::{
    CARRIER, CELL, CORE, EMULATION, FLOW, HANDOVER, MOBILITY, NEIGHBOUR, OUTAGE, PARTS, PATH,
    PROFILE, PROGRAM, RADIO, ROOT, RUN, SPLIT, STAGE, Table, UE,
};

/// Every table of the spec.
fn tables() -> impl Iterator<Item = &'static Table> {
    let whole: [&'static Table; 18] = [
        &ROOT, &RUN, &EMULATION, &CORE, &PATH, &STAGE, &FLOW, &PROGRAM, &PROFILE, &RADIO, &UE,
        &CELL, &CARRIER, &NEIGHBOUR, &HANDOVER, &OUTAGE, &MOBILITY, &SPLIT,
    ];
    whole.into_iter().chain(PARTS.iter().map(|part| part.table))
}
