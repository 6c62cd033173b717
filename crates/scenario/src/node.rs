//! A TOML document as a tree in which every value knows where it came from.

use std::fmt;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::Origin;
use crate::problem::Problems;
use crate::secret::redacted;

/// A value and where it came from.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Node {
    /// The value itself.
    pub(crate) value: Value,
    /// Where it came from.
    pub(crate) origin: Origin,
}

/// What a node holds.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    /// A string.
    Text(String),
    /// An integer in decimal, of any length.
    Integer(String),
    /// A float as written, underscores removed.
    Float(String),
    /// A boolean.
    Flag(bool),
    /// A date or time as written.
    Date(String),
    /// An array.
    List(Vec<Node>),
    /// A table.
    Table(Vec<Entry>),
}

/// One key of a table.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// Where the key came from.
    pub(crate) origin: Origin,
    /// The value at this key.
    pub(crate) node: Node,
}

/// Most lines with syntax errors that are reported: a file of another kind has too many.
const MOST_SYNTAX_ERRORS: usize = 5;

impl Node {
    /// Parses a file; each line that is not TOML becomes one problem.
    pub(crate) fn parse(name: &str, text: &str, problems: &mut Problems) -> Self {
        let places = Places { name: name.into(), starts: line_starts(text), text };
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut errors: Vec<_> = errors
            .iter()
            .map(|error| (places.line_and_column(error.span().map_or(0, |span| span.start)), error))
            .collect();
        errors.sort_by_key(|&(place, _)| place);
        // One mistake often causes several parser errors.
        errors.dedup_by_key(|&mut ((line, _), _)| line);
        let more = errors.len().saturating_sub(MOST_SYNTAX_ERRORS);
        for (index, ((line, column), error)) in errors.iter().take(MOST_SYNTAX_ERRORS).enumerate() {
            let (origin, message) =
                (places.origin(*line, *column), format!("not TOML: {}", error.message()));
            if more > 0 && index + 1 == MOST_SYNTAX_ERRORS {
                let help = format!("{more} more not shown: is this a scenario file?");
                problems.add_with_help(&origin, message, help);
            } else {
                problems.add(&origin, message);
            }
        }
        let entries = places.entries(table.get_ref());
        Self { value: Value::Table(entries), origin: places.at(0) }
    }

    /// Parses the value of a `--set`: as TOML if possible, otherwise as a string.
    pub(crate) fn parse_set(value: &str, origin: &Origin) -> Self {
        let parsed = DeValue::parse(value).ok().map(|value| value.into_inner());
        match parsed {
            Some(value) => SetValue(origin).node(&value),
            None => Self { value: Value::Text(value.to_owned()), origin: origin.clone() },
        }
    }

    /// The value under `key`, if this is a table that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(entries) => {
                entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
            }
            _ => None,
        }
    }

    /// Keys of a table; empty for any other value.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The table under `key`, empty if it is missing.
    pub(crate) fn table(
        &self,
        key: &str,
        header: &str,
        problems: &mut Problems,
    ) -> (&Origin, &[Entry]) {
        let Some(node) = self.get(key) else { return (&self.origin, &[]) };
        if !matches!(node.value, Value::Table(_)) {
            let found = node.value.describe();
            problems.add(&node.origin, format!("`{key}` expects a table, {header}, not {found}"));
        }
        (&node.origin, node.entries())
    }

    /// The list of tables under `key`, empty if it is missing.
    pub(crate) fn tables(
        &self,
        key: &str,
        header: &str,
        problems: &mut Problems,
    ) -> Vec<(&Origin, &[Entry])> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let mut refuse = |node: &Self| {
            let found = node.value.describe();
            let message = format!("`{key}` expects a list of tables, {header}, not {found}");
            problems.add(&node.origin, message);
        };
        let Value::List(items) = &node.value else {
            refuse(node);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in items {
            match &item.value {
                Value::Table(entries) => tables.push((&item.origin, entries.as_slice())),
                _ => refuse(item),
            }
        }
        tables
    }
}

impl Value {
    /// What the value is, for "expects …, not …".
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("the string {}", quoted(text)),
            Self::Integer(text) | Self::Float(text) | Self::Date(text) => text.clone(),
            Self::Flag(flag) => flag.to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
        }
    }
}

/// The value as TOML writes it.
impl fmt::Display for Value {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |parts: Vec<String>| parts.join(", ");
        match self {
            Self::Text(text) => toml::Value::String(text.clone()).fmt(to),
            Self::Integer(text) | Self::Float(text) | Self::Date(text) => to.write_str(text),
            Self::Flag(flag) => flag.fmt(to),
            Self::List(items) => {
                write!(
                    to,
                    "[{}]",
                    listed(items.iter().map(|item| item.value.to_string()).collect())
                )
            }
            Self::Table(entries) => {
                let of = |entry: &Entry| format!("{} = {}", key(&entry.key), entry.node.value);
                write!(to, "{{ {} }}", listed(entries.iter().map(of).collect()))
            }
        }
    }
}

/// A TOML key, quoted if necessary.
pub(crate) fn key(name: &str) -> String {
    let bare = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if !name.is_empty() && name.chars().all(bare) {
        name.to_owned()
    } else {
        toml::Value::String(name.to_owned()).to_string()
    }
}

/// A string in quotes, shortened if it is too long for a message.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    // Redact first: once cut, a part of a secret can no longer be recognised.
    let text = &redacted(text);
    if text.chars().count() <= LONGEST {
        format!("{text:?}")
    } else {
        format!("{:?}…", text.chars().take(LONGEST).collect::<String>())
    }
}

/// Turns the parser's values into nodes.
trait Convert {
    fn place(&self, at: usize) -> Origin;

    fn convert(&self, value: &DeValue<'_>, origin: Origin) -> Node {
        let value = match value {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(integer) => Value::Integer(decimal(integer.as_str(), integer.radix())),
            DeValue::Float(float) => Value::Float(float.as_str().to_owned()),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Datetime(date) => Value::Date(date.to_string()),
            DeValue::Array(items) => Value::List(
                items
                    .iter()
                    .map(|item| self.convert(item.get_ref(), self.place(item.span().start)))
                    .collect(),
            ),
            DeValue::Table(table) => Value::Table(self.entries(table)),
        };
        Node { value, origin }
    }

    fn entries(&self, table: &DeTable<'_>) -> Vec<Entry> {
        table
            .iter()
            .map(|(key, value)| Entry {
                key: key.get_ref().to_string(),
                origin: self.place(key.span().start),
                node: self.convert(value.get_ref(), self.place(value.span().start)),
            })
            .collect()
    }
}

/// Converts byte offsets to places in a file.
struct Places<'a> {
    name: Arc<str>,
    text: &'a str,
    starts: Vec<usize>,
}

impl Places<'_> {
    fn at(&self, offset: usize) -> Origin {
        let (line, column) = self.line_and_column(offset);
        self.origin(line, column)
    }

    fn origin(&self, line: usize, column: usize) -> Origin {
        Origin::File { name: self.name.clone(), line, column }
    }

    fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|&start| start <= offset);
        // The first line starts at 0, so `line` is at least 1.
        let start = self.starts[line - 1];
        let before = self.text.as_bytes().get(start..offset).unwrap_or_default();
        (line, String::from_utf8_lossy(before).chars().count() + 1)
    }
}

impl Convert for Places<'_> {
    fn place(&self, at: usize) -> Origin {
        self.at(at)
    }
}

/// Everything in a `--set` argument has the same place.
struct SetValue<'a>(&'a Origin);

impl SetValue<'_> {
    fn node(&self, value: &DeValue<'_>) -> Node {
        self.convert(value, self.0.clone())
    }
}

impl Convert for SetValue<'_> {
    fn place(&self, _at: usize) -> Origin {
        self.0.clone()
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// An integer of any radix in decimal; as written if even that is too large.
fn decimal(text: &str, radix: u32) -> String {
    if radix == 10 {
        return text.to_owned();
    }
    match i128::from_str_radix(text, radix) {
        Ok(value) => value.to_string(),
        Err(_) => i128::MAX.to_string(),
    }
}
