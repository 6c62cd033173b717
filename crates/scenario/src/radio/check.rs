//! Checks which keys of the radio cannot be combined, each reported at its place.

mod cell;

use std::collections::BTreeMap;

use airpath_base::Duration;
use airpath_radio::rrc::enumerations::sr_periods;

use super::layers::Tables;
use super::{Radio, Ue, neighbours, split, timers};
use crate::Origin;
use crate::decimal::unscaled;
use crate::problem::Problems;
use crate::read::Fields;
use crate::spec::{AccessKind, Chosen, LteMcsTable, NrMcsTable, RlcMode};
use crate::suggest::list;

pub(crate) use cell::{edch_tti, numerology, resource_blocks, tdd_pattern};

/// Checks everything, given complete tables.
pub(super) fn radio(radio: &Radio, problems: &mut Problems) {
    let any = radio.fields.flag("any_timer_value") == Some(true);
    cell::check(&radio.cell, problems);
    for ue in &radio.ues {
        tables(&ue.tables, &radio.cell, any, problems);
    }
    for carrier in &radio.carriers {
        cell::check(&carrier.cell, problems);
        for part in ["link_adaptation", "link_adaptation_up"] {
            link_adaptation(carrier.tables.part(part), &carrier.cell, part, problems);
        }
    }
    carriers_of_ues(radio, problems);
    for neighbour in &radio.neighbours {
        cell::check(&neighbour.cell, problems);
        tables(&neighbour.tables, &neighbour.cell, any, problems);
    }
    neighbours::check(radio, problems);
    split::check(radio, any, problems);
}

/// Checks that no UE uses more carriers than there are.
fn carriers_of_ues(radio: &Radio, problems: &mut Problems) {
    let there = radio.carriers.len() as u64;
    for ue in &radio.ues {
        if let Some(used) = ue.fields.count("carriers").filter(|&used| used > there) {
            problems.add(
                ue.fields.origin_of("carriers"),
                format!("`carriers` is {used}, but the number of [[radio.carrier]] is {there}"),
            );
        }
    }
}

/// Checks the tables of a UE in one cell.
fn tables(ue: &Tables, cell: &Fields, any: bool, problems: &mut Problems) {
    for (_, fields) in ue.parts.iter().filter(|_| !any) {
        timers::check(fields, problems);
    }
    for part in ["link_adaptation", "link_adaptation_up"] {
        link_adaptation(ue.part(part), cell, part, problems);
    }
    for part in ["rlc", "rlc_up"] {
        rlc(ue.part(part), problems);
    }
    rrc(ue.part("rrc"), any, problems);
    if matches!(cell.selected(), Some(AccessKind::Umts | AccessKind::Evdo)) {
        return;
    }
    sr(ue, cell, any, problems);
    let rach = ue.part("rach");
    at_most(rach, "response_delay_ms", "response_window_ms", problems);
    drx(ue.part("drx"), problems);
    alignment(ue, problems);
}

/// Checks that names are unique, including those that a count makes. `known` has the names of the
/// UEs so far, and their places.
pub(super) fn names(known: &mut BTreeMap<String, Origin>, ue: &Ue, problems: &mut Problems) {
    let place = ue.fields.origin_of("name");
    if let Some((twice, other)) = ue.names().find_map(|name| known.get_key_value(&name)) {
        problems.add_with_help(
            place,
            format!("two UEs have the name {twice:?}"),
            format!("the other one is at {other}"),
        );
    }
    known.extend(ue.names().map(|name| (name, place.clone())));
}

fn link_adaptation(fields: &Fields, cell: &Fields, part: &str, problems: &mut Problems) {
    if let Some(mcs) = fields.count("fixed_mcs") {
        if matches!(cell.selected(), Some(AccessKind::Umts | AccessKind::Evdo)) {
            // A value above the last row counts as the last row.
            return;
        }
        let up = part.ends_with("_up");
        let lte = cell.selected() == Some(AccessKind::Lte);
        let table = match (lte, up) {
            (true, true) => LteMcsTable::Qam64.text(),
            (_, true) => cell.text("mcs_table_up").unwrap_or_default(),
            (_, false) => cell.text("mcs_table_down").unwrap_or_default(),
        };
        // TS 38.214 tables 5.1.3.1-1 to -3, TS 36.213 tables 7.1.7.1-1 and -1A: the others are
        // reserved
        let qam256 = [NrMcsTable::Qam256.text(), LteMcsTable::Qam256.text()].contains(&table);
        let highest = if qam256 { 27 } else { 28 };
        if mcs > highest {
            problems.add_with_help(
                fields.origin_of("fixed_mcs"),
                format!(
                    "`fixed_mcs` is {mcs}, but the highest MCS of the table \"{table}\" is {highest}"
                ),
                "higher MCS indices are reserved; [radio.cell] sets the MCS tables",
            );
        }
    }
    if let (Some(lowest), Some(highest)) =
        (fields.real("outer_loop_lowest_db"), fields.real("outer_loop_highest_db"))
        && lowest > highest
    {
        problems.add(
            fields.origin_of("outer_loop_lowest_db"),
            format!(
                "`outer_loop_lowest_db` ({lowest}) is larger than `outer_loop_highest_db` \
                 ({highest})"
            ),
        );
    }
}

fn rlc(fields: &Fields, problems: &mut Problems) {
    let um = fields.chosen() == Some(RlcMode::Um);
    let infinite = fields.text("t_reordering_ms") == Some("infinity");
    // TS 38.331 PDCP-Config: t-Reordering
    if infinite && um && fields.flag("out_of_order_delivery") == Some(false) {
        problems.add_with_help(
            fields.origin_of("t_reordering_ms"),
            "`t_reordering_ms` = \"infinity\" needs mode = \"am\", but it is \"um\"",
            "otherwise packets after a lost one would wait forever; out_of_order_delivery = true also avoids that",
        );
    }
    // The field has 12 bits in UMTS, and no key.
    let allowed: &[u64] = match (fields.selected(), um) {
        (Some(AccessKind::Lte), true) => &[5, 10],
        (Some(AccessKind::Lte), false) => &[10],
        (_, true) => &[6, 12],
        (_, false) => &[12, 18],
    };
    if let Some(bits) = fields.count("sn_bits").filter(|bits| !allowed.contains(bits)) {
        let mode = fields.text("mode").unwrap_or_default();
        problems.add(
            fields.origin_of("sn_bits"),
            format!(
                "`sn_bits` is {bits}, but with mode = \"{mode}\" must be {}",
                list(allowed.iter().map(u64::to_string)).replace(", ", " or ")
            ),
        );
    }
}

fn sr(ue: &Tables, cell: &Fields, any: bool, problems: &mut Problems) {
    let sr = ue.part("sr");
    let Some(period) = sr.time("period_ms") else {
        if sr.text("period_ms").is_some() && ue.part("rach").flag("enabled") == Some(false) {
            problems.add_with_help(
                sr.origin_of("period_ms"),
                "a UE without SR occasions needs random access: otherwise it cannot request uplink",
                "set `period_ms` in [radio.sr], or enabled = true in [radio.rach]",
            );
        }
        return;
    };
    let (periods, specification): (Vec<u64>, _) = match cell.selected() {
        Some(AccessKind::Lte) => (
            [1, 2, 5, 10, 20, 40, 80].map(|ms| ms * 1_000_000).to_vec(),
            "TS 36.213 table 10.1.5-1",
        ),
        _ => {
            let Some(numerology) = numerology(cell) else { return };
            let slot = numerology.slot().as_nanos();
            let periods = sr_periods(numerology).iter().map(|&slots| u64::from(slots) * slot);
            (periods.collect(), "TS 38.331 SchedulingRequestResourceConfig")
        }
    };
    if !any && !periods.contains(&period.as_nanos()) {
        problems.add_with_help(
            sr.origin_of("period_ms"),
            format!(
                "`period_ms` is {}, which is not a period of {specification}",
                unscaled(period.as_nanos(), 6)
            ),
            format!(
                "allowed: {}; radio.any_timer_value = true allows any",
                list(periods.into_iter().map(|ns| unscaled(ns, 6)))
            ),
        );
    }
}

fn drx(fields: &Fields, problems: &mut Problems) {
    if fields.flag("enabled") != Some(true) {
        return;
    }
    if let (Some(offset), Some(cycle)) =
        (fields.time("start_offset_ms"), fields.time("long_cycle_ms"))
        && offset >= cycle
    {
        // TS 38.331 DRX-Config: 0 to the cycle less one
        let (offset, cycle) = (unscaled(offset.as_nanos(), 6), unscaled(cycle.as_nanos(), 6));
        problems.add(
            fields.given("start_offset_ms").unwrap_or(fields.origin_of("long_cycle_ms")),
            format!("`start_offset_ms` ({offset}) must be below `long_cycle_ms` ({cycle})"),
        );
    }
    if let Some(offset) = fields.time("start_offset_ms")
        && offset.as_nanos() % 1_000_000 != 0
    {
        problems.add_with_help(
            fields.origin_of("start_offset_ms"),
            format!(
                "`start_offset_ms` is {}, but must be a whole number",
                unscaled(offset.as_nanos(), 6)
            ),
            "drx-StartOffset counts subframes; `slot_offset_ms` moves the on-duration within one",
        );
    }
    if let (Some(long), Some(short)) = (fields.time("long_cycle_ms"), fields.time("short_cycle_ms"))
        && !long.as_nanos().is_multiple_of(short.as_nanos())
    {
        problems.add(
            fields.origin_of("short_cycle_ms"),
            format!(
                "`short_cycle_ms` ({}) does not divide `long_cycle_ms` ({})",
                unscaled(short.as_nanos(), 6),
                unscaled(long.as_nanos(), 6)
            ),
        );
    }
}

fn rrc(fields: &Fields, any: bool, problems: &mut Problems) {
    // TS 25.304 8.3: 2^k frames, k from 3 to 9
    const UMTS: &[u64] = &[80, 160, 320, 640, 1280, 2560, 5120];
    // TS 38.331, TS 36.331 PCCH-Config: rf32, rf64, rf128, rf256
    const OTHERS: &[u64] = &[320, 640, 1280, 2560];
    let allowed = match fields.selected() {
        Some(AccessKind::Umts) => UMTS,
        // C.S0024-A: slot cycles from 4 slots to 1.2 hours
        Some(AccessKind::Evdo) => return,
        Some(AccessKind::Nr | AccessKind::Lte) | None => OTHERS,
    };
    for name in ["paging_cycle_ms", "inactive_paging_cycle_ms"] {
        if let Some(cycle) = fields.time(name)
            && !any
            && !allowed.iter().any(|&ms| Duration::from_millis(ms) == cycle)
        {
            problems.add_with_help(
                fields.origin_of(name),
                format!(
                    "`{name}` is {}, which is not a paging cycle",
                    unscaled(cycle.as_nanos(), 6)
                ),
                format!(
                    "allowed: {}; radio.any_timer_value = true allows any",
                    list(allowed.iter().map(u64::to_string))
                ),
            );
        }
    }
}

fn alignment(ue: &Tables, problems: &mut Problems) {
    let alignment = ue.part("time_alignment");
    if alignment.flag("enabled") == Some(true) && ue.part("rach").flag("enabled") == Some(false) {
        problems.add_with_help(
            alignment.origin_of("enabled"),
            "time alignment needs random access, which restores it",
            "set enabled = true in [radio.rach]",
        );
    }
}

fn at_most(fields: &Fields, name: &str, limit: &str, problems: &mut Problems) {
    if let (Some(value), Some(most)) = (fields.time(name), fields.time(limit))
        && value > most
    {
        let (value, most) = (unscaled(value.as_nanos(), 6), unscaled(most.as_nanos(), 6));
        let place = fields.given(name).unwrap_or(fields.origin_of(limit));
        problems.add(place, format!("`{name}` ({value}) is larger than `{limit}` ({most})"));
    }
}
