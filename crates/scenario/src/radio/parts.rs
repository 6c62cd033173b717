//! The tables that a UE has.

use crate::spec::{PARTS, Table};

/// Keys of these tables: `channel`, `channel_up` and so on.
pub(super) fn part_keys() -> impl Iterator<Item = (&'static str, &'static Table)> {
    PARTS.iter().flat_map(|part| {
        std::iter::once((part.name, part.table)).chain(part.up.map(|up| (up, part.table)))
    })
}
