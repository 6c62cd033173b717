//! Decodes one value according to its kind and range.

use std::ops::RangeInclusive;

use airpath_base::{Duration, Rate};

use crate::decimal::{Misfit, scaled, unscaled};
use crate::node::{Node, Value, quoted};
use crate::spec::{FASTEST_BPS, Key, Kind, Privacy, TimeUnit, Unit};
use crate::suggest::{list, nearest};

/// A value of the right kind, in range.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Setting {
    /// Text, name, choice, file or profile.
    Text(String),
    /// True or false.
    Flag(bool),
    /// A whole number.
    Count(u64),
    /// A probability.
    Fraction(f64),
    /// A number that may have a fraction.
    Real(f64),
    /// A length of time.
    Time(Duration),
    /// A bit rate.
    Rate(Rate),
}

/// True for the characters of a [`Kind::Name`].
pub(crate) fn is_name_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-')
}

/// Why a value is refused: message and help.
pub(crate) type Refusal = (String, Option<String>);

/// Checks and decodes one value.
pub(crate) fn decode(key: &Key, node: &Node) -> Result<Setting, Refusal> {
    if let Kind::OrWord { word, kind } = key.kind {
        return decode_or_word(key, word, kind, node);
    }
    let name = key.name;
    let mismatch = || {
        let expects = key.kind.expects();
        let found = match key.privacy {
            Privacy::Secret => String::new(),
            _ => format!(", not {}", node.value.describe()),
        };
        (format!("`{name}` expects {expects}{found}"), None)
    };
    let out_of_range =
        |found: &str| (format!("`{name}` is {found}, but must be {}", key.kind.range()), None);
    let number = |power| match &node.value {
        Value::Integer(text) | Value::Float(text) => match scaled(text, power) {
            Ok(value) => Ok((value, text)),
            Err(Misfit::NotANumber) => Err(mismatch()),
            Err(Misfit::Negative | Misfit::TooLarge) => Err(out_of_range(text)),
        },
        _ => Err(mismatch()),
    };
    let real = |range: RangeInclusive<f64>| match &node.value {
        Value::Integer(text) | Value::Float(text) => match text.parse::<f64>() {
            // `+ 0.0` turns -0 into 0.
            Ok(value) if range.contains(&value) => Ok(value + 0.0),
            Ok(value) if value.is_finite() => Err(out_of_range(text)),
            _ => Err(mismatch()),
        },
        _ => Err(mismatch()),
    };
    match (key.kind, &node.value) {
        (Kind::Text, Value::Text(text)) if !text.contains(char::is_control) => {
            Ok(Setting::Text(text.clone()))
        }
        (Kind::Name, Value::Text(text)) if is_name(text) => Ok(Setting::Text(text.clone())),
        (Kind::File | Kind::Profile | Kind::Preset, Value::Text(text)) if !text.is_empty() => {
            Ok(Setting::Text(text.clone()))
        }
        (Kind::Choice(choices), Value::Text(text)) => {
            let values = || choices.iter().map(|choice| choice.value);
            // In some of them, hyphens used to be underscores.
            let same = |value: &&str| *value == text || *value == text.replace('_', "-");
            if let Some(value) = values().find(|value| *value == text).or(values().find(same)) {
                return Ok(Setting::Text(value.to_owned()));
            }
            let near = || nearest(text, values()).map(|near| format!("did you mean \"{near}\"?"));
            let help = library(name, text).or_else(near);
            Err((format!("`{name}` is {}, but must be {}", quoted(text), key.kind.expects()), help))
        }
        (Kind::Flag, &Value::Flag(flag)) => Ok(Setting::Flag(flag)),
        (Kind::Count { .. }, Value::Float(_)) => Err(mismatch()),
        (Kind::Count { min, max, .. }, _) => match number(0)? {
            (value, _) if (min..=max).contains(&value) => Ok(Setting::Count(value)),
            (_, text) => Err(out_of_range(text)),
        },
        (Kind::Time { unit, min_ns, max_ns }, _) => match number(unit.power())? {
            (ns, _) if (min_ns..=max_ns).contains(&ns) => {
                Ok(Setting::Time(Duration::from_nanos(ns)))
            }
            (_, text) => Err(out_of_range(text)),
        },
        (Kind::Rate, _) => {
            let (bps, text) = number(6)?;
            let rate = Rate::from_bps(bps).filter(|rate| rate.bps() <= FASTEST_BPS);
            rate.map(Setting::Rate).ok_or_else(|| out_of_range(text))
        }
        (Kind::Fraction, _) => real(0.0..=1.0).map(Setting::Fraction),
        (Kind::Real { min, max, .. }, _) => real(min..=max).map(Setting::Real),
        _ => Err(mismatch()),
    }
}

/// How to name a library: a scenario may be a stranger's, and loading a library runs its code.
fn library(key: &str, text: &str) -> Option<String> {
    (key == "congestion" && text.ends_with(".so")).then(|| {
        let command = "airpath run SCENARIO --set flow.0.congestion=./libNAME.so";
        format!("a scenario cannot load a library; name it on the command line: {command}")
    })
}

/// Decodes a value that may be one word instead of what `kind` allows.
fn decode_or_word(key: &Key, word: &str, kind: &Kind, node: &Node) -> Result<Setting, Refusal> {
    match &node.value {
        Value::Text(text) if text == word => Ok(Setting::Text(text.clone())),
        Value::Integer(_) | Value::Float(_) => decode(&Key { kind: *kind, ..*key }, node)
            .map_err(|(message, help)| (format!("{message}, or \"{word}\""), help)),
        found => {
            let (expects, found) = (key.kind.expects(), found.describe());
            Err((format!("`{}` expects {expects}, not {found}", key.name), None))
        }
    }
}

/// True for a text that a [`Kind::Name`] may hold.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.chars().all(is_name_char)
}

impl Kind {
    /// Description of the kind, for "expects …".
    pub(crate) fn expects(self) -> String {
        match self {
            Self::Text => "a string on one line".to_owned(),
            Self::Name => "a name of 1 to 64 letters, digits, `.`, `_` and `-`".to_owned(),
            Self::Choice(choices) => {
                let values = list(choices.iter().map(|each| format!("\"{}\"", each.value)));
                format!("one of {values}")
            }
            Self::Flag => "true or false".to_owned(),
            Self::Count { unit: Unit::Bytes, .. } => {
                "a whole number of bytes, e.g. 65536 (64 KiB) or 64000 (64 kB)".to_owned()
            }
            Self::Count { unit: Unit::Segments, .. } => {
                "a whole number of segments, e.g. 10".to_owned()
            }
            Self::Count { unit: Unit::Packets, .. } => {
                "a whole number of packets, e.g. 100".to_owned()
            }
            Self::Count { unit: Unit::Slots, .. } => "a whole number of slots, e.g. 8".to_owned(),
            Self::Count { unit: Unit::Symbols, .. } => {
                "a whole number of symbols, e.g. 2".to_owned()
            }
            Self::Count { unit: Unit::Subframes, .. } => {
                "a whole number of subframes, e.g. 8".to_owned()
            }
            Self::Count { unit: Unit::Pdus, .. } => "a whole number of PDUs, e.g. 64".to_owned(),
            Self::Count { unit: Unit::Plain, .. } => "a whole number, e.g. 1".to_owned(),
            Self::Time { unit: TimeUnit::Ms, .. } => {
                "a number of milliseconds, e.g. 200 or 0.5".to_owned()
            }
            Self::Time { unit: TimeUnit::S, .. } => {
                "a number of seconds, e.g. 30 or 0.5".to_owned()
            }
            Self::Rate => "a number of megabits (10^6 bits) per second, e.g. 0.35".to_owned(),
            Self::Fraction => "a number from 0 to 1, e.g. 0.02".to_owned(),
            Self::File => "a file name, e.g. \"cell.down.gz\"".to_owned(),
            Self::Real { unit: "", .. } => "a number, e.g. 0.5".to_owned(),
            Self::Real { unit, .. } => format!("a number of {unit}, e.g. 2.5"),
            Self::OrWord { word, kind } => format!("{}, or \"{word}\"", kind.expects()),
            Self::Preset => "the name of a radio preset, e.g. \"nr-n78\"".to_owned(),
            Self::Profile => "the name of a profile, e.g. \"rfc\"".to_owned(),
            Self::Table => "a table".to_owned(),
            Self::List => "a list of tables".to_owned(),
        }
    }

    /// Limits of the kind, for "must be …"; empty if it has none.
    pub(crate) fn range(self) -> String {
        match self {
            Self::Count { min, max, .. } => format!("from {min} to {max}"),
            Self::Time { unit, min_ns, max_ns } => {
                let power = unit.power();
                format!("from {} to {}", unscaled(min_ns, power), unscaled(max_ns, power))
            }
            Self::Rate => format!("from {} to {}", unscaled(1, 6), unscaled(FASTEST_BPS, 6)),
            Self::Fraction => "from 0 to 1".to_owned(),
            Self::Real { min, max, .. } => format!("from {min} to {max}"),
            _ => String::new(),
        }
    }
}

/// A setting in TOML, in the unit of its key.
pub(crate) fn toml_value(key: &Key, setting: &Setting) -> String {
    match (setting, key.kind.plain()) {
        (Setting::Text(text), _) => toml::Value::String(text.clone()).to_string(),
        (Setting::Flag(flag), _) => flag.to_string(),
        (Setting::Count(count), _) => count.to_string(),
        (Setting::Fraction(number) | Setting::Real(number), _) => number.to_string(),
        (Setting::Time(time), Kind::Time { unit, .. }) => unscaled(time.as_nanos(), unit.power()),
        // Only a key of kind `Time` holds a time.
        (Setting::Time(time), _) => time.as_nanos().to_string(),
        (Setting::Rate(rate), _) => unscaled(rate.bps(), 6),
    }
}
