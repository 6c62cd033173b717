//! Checks that timers and counters of RRC take values from the specification's enumerations.

use airpath_radio::Generation;
use airpath_radio::rrc::enumerations::{Enumeration, Unit, allowed};

use crate::problem::Problems;
use crate::read::Fields;
use crate::spec::{AccessKind, Key};
use crate::suggest::list;
use crate::value::Setting;
use crate::value::toml_value;

/// Reports settings of a complete table that RRC cannot configure.
pub(super) fn check(fields: &Fields, problems: &mut Problems) {
    let Some(generation) = generation(fields) else { return };
    for (key, setting) in fields.settings() {
        let Some(enumeration) = key.enumeration.and_then(|name| allowed(generation, name)) else {
            continue;
        };
        if let Some(help) = misfit(key, setting, enumeration) {
            let specification = match generation {
                Generation::Lte => "TS 36.331",
                Generation::Nr => "TS 38.331",
            };
            problems.add_with_help(
                fields.origin_of(key.name),
                format!(
                    "`{}` is {}, which is not a value of {} ({specification} {})",
                    key.name,
                    toml_value(key, setting),
                    enumeration.name,
                    enumeration.element,
                ),
                format!("{help}; with radio.any_timer_value = true any value is allowed"),
            );
        }
    }
}

/// The generation whose RRC defines the table's parameters; `None` if their values are not known.
fn generation(fields: &Fields) -> Option<Generation> {
    match fields.selected() {
        Some(AccessKind::Lte) => Some(Generation::Lte),
        Some(AccessKind::Umts | AccessKind::Evdo) => None,
        // A table without variants is the same in NR and LTE.
        Some(AccessKind::Nr) | None => Some(Generation::Nr),
    }
}

/// The nearest values, if the setting is not in the enumeration.
fn misfit(key: &Key, setting: &Setting, enumeration: &Enumeration) -> Option<String> {
    let value = match (setting, enumeration.unit) {
        // TS 38.331 PDCP-Config: an absent t-Reordering is infinity
        (Setting::Text(_), _) if enumeration.element == "PDCP-Config" => return None,
        (Setting::Text(word), _) if word == "infinity" && !enumeration.infinity => {
            let last = enumeration.values.last()?;
            return Some(format!("largest: {}", written(key, *last, enumeration.unit)?));
        }
        (Setting::Time(time), Unit::PdcchSubframes) => {
            let (whole, rest) = (time.as_nanos() / MS, time.as_nanos() % MS);
            // The setting lies between two values of the enumeration.
            if rest == 0 { whole } else { return Some(near(key, whole, enumeration)) }
        }
        (Setting::Time(time), _) => time.as_nanos(),
        (Setting::Count(count), _) => *count,
        _ => return None,
    };
    (!enumeration.contains(value)).then(|| near(key, value, enumeration))
}

const MS: u64 = 1_000_000;

/// The enumeration's values on both sides of a value that it does not have.
fn near(key: &Key, value: u64, enumeration: &Enumeration) -> String {
    let values = enumeration.values;
    let above = values.partition_point(|&each| each <= value);
    let around = values[above.saturating_sub(1)..values.len().min(above + 1)].iter();
    let texts = around.filter_map(|&each| written(key, each, enumeration.unit));
    format!("nearest: {}", list(texts))
}

/// A value of an enumeration as it is written in a file.
fn written(key: &Key, value: u64, unit: Unit) -> Option<String> {
    let setting = match (key.kind.plain(), unit) {
        (crate::spec::Kind::Time { .. }, Unit::PdcchSubframes) => {
            Setting::Time(airpath_base::Duration::from_millis(value))
        }
        (crate::spec::Kind::Time { .. }, _) => {
            Setting::Time(airpath_base::Duration::from_nanos(value))
        }
        _ => Setting::Count(value),
    };
    Some(toml_value(key, &setting))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Chosen, PARTS};

    /// A misspelt name in the tables would leave the key unchecked.
    #[test]
    fn every_enumeration_exists() {
        let mut found = 0;
        for part in PARTS {
            for (access, generation) in
                [(AccessKind::Nr, Generation::Nr), (AccessKind::Lte, Generation::Lte)]
            {
                for key in part.table.keys(Some(access.text())) {
                    let Some(name) = key.enumeration else { continue };
                    // A table that NR and LTE share uses the same names for both.
                    assert!(allowed(generation, name).is_some(), "{access:?} {}: {name}", key.name);
                    found += 1;
                }
            }
        }
        assert!(found > 30, "{found}");
    }
}
