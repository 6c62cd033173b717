//! `[radio.cell]`.

use airpath_base::Duration;
use airpath_radio::lte;
use airpath_radio::nr::{self, FrequencyRange, McsTable, Numerology, SYMBOLS_PER_SLOT, TddPattern};

use airpath_radio::umts::{DchRate, EdchCategory, EdchTti, HsdpaCategory};

use crate::decimal::unscaled;
use crate::problem::Problems;
use crate::read::Fields;
use crate::spec::{AccessKind, Duplex, Frequencies, NrMcsTable};
use crate::suggest::list;

/// Reports what is wrong with a complete table.
pub(super) fn check(cell: &Fields, problems: &mut Problems) {
    blocks(cell, problems);
    match cell.selected() {
        Some(AccessKind::Umts) => umts_carrier(cell, problems),
        Some(AccessKind::Lte) => lte_carrier(cell, problems),
        Some(AccessKind::Nr) => nr_carrier(cell, problems),
        Some(AccessKind::Evdo) | None => {}
    }
}

/// The numerology of an NR cell, if its subcarrier spacing is a valid one.
pub(crate) fn numerology(cell: &Fields) -> Option<Numerology> {
    Numerology::from_khz(cell.count("scs_khz")?.try_into().ok()?)
}

/// N_RB of the bandwidth, if a channel of that bandwidth exists.
pub(crate) fn resource_blocks(cell: &Fields) -> Option<u32> {
    let khz = bandwidth_khz(cell)?;
    if cell.selected() == Some(AccessKind::Lte) {
        return lte::resource_blocks(khz);
    }
    let whole = khz.is_multiple_of(1000).then_some(khz / 1000)?;
    nr::resource_blocks(range(cell), whole, numerology(cell)?)
}

/// The pattern of an NR TDD cell, if it is valid.
pub(crate) fn tdd_pattern(cell: &Fields) -> Option<TddPattern> {
    (cell.chosen::<Duplex>()? == Duplex::Tdd).then_some(())?;
    cell.text("tdd_pattern")?.parse().ok()
}

fn bandwidth_khz(cell: &Fields) -> Option<u32> {
    // A bandwidth is at most 400 MHz; 1.4 MHz is not a whole number.
    Some((cell.real("bandwidth_mhz")? * 1000.0).round() as u32)
}

fn range(cell: &Fields) -> FrequencyRange {
    match cell.chosen() {
        Some(Frequencies::Fr2) => FrequencyRange::Fr2,
        Some(Frequencies::Fr1) | None => FrequencyRange::Fr1,
    }
}

fn blocks(cell: &Fields, problems: &mut Problems) {
    let Some(bandwidth) = cell.real("bandwidth_mhz") else { return };
    let Some(most) = resource_blocks(cell) else {
        if cell.selected() == Some(AccessKind::Lte) {
            problems.add(
                cell.origin_of("bandwidth_mhz"),
                format!("`bandwidth_mhz` is {bandwidth}, but LTE channels have 1.4, 3, 5, 10, 15 or 20 MHz"),
            );
        } else if let Some(numerology) = numerology(cell) {
            let known = (1..=400)
                .filter(|&mhz| nr::resource_blocks(range(cell), mhz, numerology).is_some());
            let known = list(known.map(|mhz| mhz.to_string()));
            let (khz, range) = (numerology.khz(), cell.text("frequency_range").unwrap_or_default());
            let place = cell.given("bandwidth_mhz").unwrap_or(cell.origin_of("scs_khz"));
            problems.add_with_help(
                place,
                format!(
                    "{range} has no {bandwidth} MHz channel with a subcarrier spacing of {khz} kHz"
                ),
                match known.as_str() {
                    "" => format!("{range} has no channels with this subcarrier spacing"),
                    known => format!("channels with this subcarrier spacing: {known} MHz"),
                },
            );
        }
        return;
    };
    for name in ["prbs_down", "prbs_up"] {
        if let Some(prbs) = cell.count(name).filter(|&prbs| prbs > u64::from(most)) {
            problems.add(
                cell.origin_of(name),
                format!(
                    "`{name}` is {prbs}, but a {bandwidth} MHz channel has {most} resource blocks"
                ),
            );
        }
    }
}

fn nr_carrier(cell: &Fields, problems: &mut Problems) {
    if let Some(khz) = cell.count("scs_khz")
        && numerology(cell).is_none()
    {
        problems.add(
            cell.origin_of("scs_khz"),
            format!("`scs_khz` is {khz}, but must be 15, 30, 60 or 120"),
        );
    }
    for name in ["overhead_down", "overhead_up"] {
        // TS 38.214 5.1.3.2
        if let Some(overhead) = cell.count(name).filter(|each| ![0, 6, 12, 18].contains(each)) {
            problems.add(
                cell.origin_of(name),
                format!("`{name}` is {overhead}, but must be 0, 6, 12 or 18"),
            );
        }
    }
    if cell.chosen::<Duplex>() == Some(Duplex::Tdd)
        && let Some(text) = cell.text("tdd_pattern")
    {
        let judged = text.parse::<TddPattern>().and_then(|pattern| {
            numerology(cell).map_or(Ok(()), |numerology| pattern.check_period(numerology))
        });
        if let Err(error) = judged {
            problems.add(cell.origin_of("tdd_pattern"), format!("`tdd_pattern`: {error}"));
            return;
        }
    }
    data_slots(cell, problems);
}

/// Checks that some slot has downlink data and some uplink data, and that the largest block has
/// room for headers.
fn data_slots(cell: &Fields, problems: &mut Problems) {
    let pattern = tdd_pattern(cell);
    let most = |symbols: fn(nr::SlotFormat) -> u8| {
        pattern.as_ref().map_or(SYMBOLS_PER_SLOT, |pattern| {
            let slots = 0..pattern.slots() as u64;
            slots.map(|slot| u32::from(symbols(pattern.slot(slot)))).max().unwrap_or(0)
        })
    };
    for (link, suffix, most, taken) in [
        ("downlink", "down", most(|slot| slot.downlink), "control_symbols"),
        ("uplink", "up", most(|slot| slot.uplink), "feedback_symbols"),
    ] {
        let least = format!("least_symbols_{suffix}");
        let (Some(control), Some(data)) = (cell.count(taken), cell.count(&least)) else { continue };
        if control + data > u64::from(most) {
            let names = [least.as_str(), taken, "tdd_pattern"];
            let place = names.iter().find_map(|name| cell.given(name));
            problems.add_with_help(
                place.unwrap_or(&cell.origin),
                format!("no slot has room for {link} data"),
                format!(
                    "a slot has at most {most} {link} symbols; `{taken}` ({control}) and `{least}` ({data}) need {}",
                    control + data
                ),
            );
        } else if let Some(bytes) = nr_block(cell, suffix, most - control as u32) {
            room_for_headers(cell, suffix, bytes, problems);
        }
    }
}

/// Bytes of a transport block of all resource blocks at MCS 0.
fn nr_block(cell: &Fields, suffix: &str, symbols: u32) -> Option<u32> {
    let count = |name: &str| Some(cell.count(&format!("{name}_{suffix}"))? as u32);
    let table = match cell.choice_of(&format!("mcs_table_{suffix}"))? {
        NrMcsTable::Qam64 => McsTable::Qam64,
        NrMcsTable::Qam64LowSe => McsTable::Qam64LowSe,
        NrMcsTable::Qam256 => McsTable::Qam256,
    };
    let allocation = nr::Allocation {
        prbs: count("prbs").or(resource_blocks(cell))?,
        symbols,
        dmrs_per_prb: count("dmrs")?,
        overhead_per_prb: count("overhead")?,
    };
    let elements = allocation.resource_elements();
    Some(nr::transport_block_size(elements, nr::mcs(table, 0)?, count("layers")?) / 8)
}

fn room_for_headers(cell: &Fields, suffix: &str, bytes: u32, problems: &mut Problems) {
    // MAC, RLC and PDCP headers, and a buffer status report.
    const HEADERS: u32 = 16;
    if bytes < HEADERS {
        let names = ["prbs", "dmrs", "overhead"].map(|name| format!("{name}_{suffix}"));
        let place = names.iter().find_map(|name| cell.given(name)).unwrap_or(&cell.origin);
        problems.add(
            place,
            format!(
                "a transport block over all resource blocks at MCS 0 has {bytes} bytes, but its headers \
                 need {HEADERS}"
            ),
        );
    }
}

fn umts_carrier(cell: &Fields, problems: &mut Problems) {
    if let Some(number) = cell.count("hsdpa_category")
        && HsdpaCategory::new(number as u8).is_none()
    {
        problems.add_with_help(
            cell.origin_of("hsdpa_category"),
            format!("`hsdpa_category` is {number}, but must be 5 to 10 or 12 to 14"),
            "UEs of categories 1 to 4 and 11 cannot receive in every TTI; airpath does not model that",
        );
    }
    for name in ["dch_down_kbps", "dch_up_kbps"] {
        if let Some(kbps) = cell.count(name).filter(|&kbps| DchRate::from_kbps(kbps).is_none()) {
            problems.add(
                cell.origin_of(name),
                format!("`{name}` is {kbps}, but must be 64, 128 or 384"),
            );
        }
    }
    let Some(time) = cell.time("edch_tti_ms") else { return };
    let Some(tti) = edch_tti(time) else {
        let given = unscaled(time.as_nanos(), 6);
        problems.add(
            cell.origin_of("edch_tti_ms"),
            format!("`edch_tti_ms` is {given}, but must be 2 or 10"),
        );
        return;
    };
    let number = cell.count("edch_category").unwrap_or_default();
    let category = EdchCategory::new(number as u8);
    if category.is_some_and(|category| category.most_bits(tti).is_none()) {
        problems.add_with_help(
            cell.given("edch_tti_ms").unwrap_or(cell.origin_of("edch_category")),
            format!("E-DCH category {number} has no TTI of 2 ms"),
            "use category 2, 4, 6 or 7, or set edch_tti_ms = 10",
        );
    }
}

/// The TTI of that length, if the E-DCH has one.
pub(crate) fn edch_tti(time: Duration) -> Option<EdchTti> {
    [EdchTti::Ms2, EdchTti::Ms10].into_iter().find(|tti| tti.duration() == time)
}

fn lte_carrier(cell: &Fields, problems: &mut Problems) {
    if let Some(layers) = cell.count("layers_down").filter(|&layers| layers > 2) {
        problems.add(
            cell.origin_of("layers_down"),
            format!("`layers_down` is {layers}, but airpath models 1 or 2 layers in LTE"),
        );
    }
    let ports = cell.count("antenna_ports");
    if ports == Some(3) {
        problems.add(
            cell.origin_of("antenna_ports"),
            "`antenna_ports` is 3, but must be 1, 2 or 4".to_owned(),
        );
    } else if cell.count("layers_down").is_some_and(|layers| layers == 2 && ports == Some(1)) {
        let place = cell.given("antenna_ports").unwrap_or(cell.origin_of("layers_down"));
        problems.add(place, "2 layers need at least 2 `antenna_ports`".to_owned());
    }
    for (suffix, usable) in [("down", None), ("up", Some(lte::uplink_blocks as fn(u32) -> u32))] {
        let prbs = cell.count(&format!("prbs_{suffix}")).map(|prbs| prbs as u32);
        let prbs = prbs.or(resource_blocks(cell)).map(|prbs| usable.map_or(prbs, |of| of(prbs)));
        if let Some(bits) = prbs.and_then(|prbs| lte::transport_block_size(0, prbs)) {
            room_for_headers(cell, suffix, bits / 8, problems);
        }
    }
    // TS 36.211 table 6.7-1: 4 symbols of PDCCH only at 1.4 MHz
    if cell.count("cfi") == Some(4) && resource_blocks(cell).is_some_and(|blocks| blocks > 10) {
        problems.add(
            cell.origin_of("cfi"),
            "`cfi` = 4 needs bandwidth_mhz = 1.4; wider cells have 1 to 3".to_owned(),
        );
    }
}
