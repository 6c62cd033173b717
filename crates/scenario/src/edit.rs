//! Changes of a document: a key and what it is set to.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::node::{Value, key};

/// The dotted path of a key, as for `--set`: `flow.0.window_bytes`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct KeyPath(pub(crate) Vec<String>);

impl KeyPath {
    /// The path whose parts are separated by dots.
    pub fn new(dotted: &str) -> Self {
        Self(dotted.split('.').map(str::to_owned).collect())
    }

    /// The path of an element of the list at this path.
    pub fn at(&self, index: usize) -> Self {
        Self([&self.0[..], &[index.to_string()]].concat())
    }

    /// Whether the path is that of a key in this table.
    pub fn is_in(&self, table: &Self) -> bool {
        self.0.starts_with(&table.0) && self != table
    }

    /// The tables that this key is in, the outermost first.
    pub fn tables(&self) -> impl Iterator<Item = Self> {
        (1..self.0.len()).map(|parts| Self(self.0[..parts].to_vec()))
    }

    /// The last part: the key's own name.
    pub fn name(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// An edit of a key in the table at this path.
    pub fn set(&self, dotted: &str, setting: impl Into<Literal>) -> Edit {
        Edit::new(dotted, setting).within(self)
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.0.iter().enumerate() {
            to.write_str(if at > 0 { "." } else { "" })?;
            to.write_str(&key(part))?;
        }
        Ok(())
    }
}

/// A value as TOML writes it; no key has given it a kind or a unit yet.
#[derive(Clone, PartialEq, Debug)]
pub struct Literal(pub(crate) Value);

impl Literal {
    /// A number with this many decimals.
    pub fn rounded(number: f64, decimals: usize) -> Self {
        Self::number_from(format!("{number:.decimals$}"))
    }

    /// The value if it is a string.
    pub fn text(&self) -> Option<&str> {
        match &self.0 {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value if it is a number.
    pub fn number(&self) -> Option<f64> {
        match &self.0 {
            Value::Integer(text) | Value::Float(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn number_from(text: String) -> Self {
        let is_digit = |char: char| char.is_ascii_digit();
        let whole = text.trim_start_matches('-').chars().all(is_digit);
        Self(if whole { Value::Integer(text) } else { Value::Float(text) })
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl From<$number> for Literal {
            fn from(number: $number) -> Self {
                Self::number_from(number.to_string())
            }
        }
    )*};
}

numbers!(f64, i32, u32, u64);

impl From<bool> for Literal {
    fn from(flag: bool) -> Self {
        Self(Value::Flag(flag))
    }
}

impl From<&str> for Literal {
    fn from(text: &str) -> Self {
        Self(Value::Text(text.to_owned()))
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

/// A change of a document.
///
/// ```
/// use airpath_scenario::KeyPath;
///
/// let edit = KeyPath::new("flow").at(0).set("congestion", "bbr");
/// assert_eq!(edit.to_string(), "flow.0.congestion=\"bbr\"");
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Edit {
    /// Where in the document.
    pub key: KeyPath,
    /// What it is set to.
    pub setting: Literal,
}

impl Edit {
    /// An edit of the key whose parts are separated by dots.
    pub fn new(dotted: &str, setting: impl Into<Literal>) -> Self {
        Self { key: KeyPath::new(dotted), setting: setting.into() }
    }

    /// An edit of the same key in the table at this path.
    pub fn within(mut self, table: &KeyPath) -> Self {
        self.key.0.splice(0..0, table.0.iter().cloned());
        self
    }
}

/// `KEY=VALUE`, as for `--set`.
impl fmt::Display for Edit {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}={}", self.key, self.setting)
    }
}

impl Serialize for Edit {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
