//! Reads one table: the keys that the file gives, checked against the [`spec`](crate::spec).

mod conditions;

use airpath_base::{Duration, Rate};

use crate::Origin;
use crate::node::{Entry, Node, Value};
use crate::problem::Problems;
use crate::spec::{Chosen, Default, Key, Kind, Rule, Table};
use crate::suggest::{list, unknown_key};
use crate::value::{Setting, decode};

/// The keys of a table, each checked.
#[derive(Clone)]
pub(crate) struct Fields {
    /// The specification of its keys.
    pub(crate) table: &'static Table,
    /// The selector's value; `None` if the table has no selector or the value is invalid.
    pub(crate) variant: Option<&'static str>,
    /// The table's name in messages.
    pub(crate) here: String,
    /// Where the table is.
    pub(crate) origin: Origin,
    fields: Vec<Field>,
    /// Keys that were given with an invalid value; each has already been reported.
    broken: Vec<&'static str>,
}

#[derive(Clone)]
struct Field {
    key: &'static Key,
    setting: Setting,
    /// Where the key was given; `None` for a default or an inherited value.
    origin: Option<Origin>,
}

impl Fields {
    /// Reads the keys that are given. `here` is the table's name for messages, e.g.
    /// `[[path.down]]`.
    pub(crate) fn read(
        table: &'static Table,
        here: &str,
        origin: &Origin,
        entries: &[Entry],
        problems: &mut Problems,
    ) -> Self {
        let mut read = Self {
            table,
            variant: None,
            here: here.to_owned(),
            origin: origin.clone(),
            fields: Vec::new(),
            broken: Vec::new(),
        };
        if let Some(selector) = table.selector {
            match entries.iter().find(|entry| entry.key == selector) {
                Some(entry) => read.variant = variant(table, &entry.node),
                None => problems.add_with_help(
                    origin,
                    format!("{here} needs `{selector}`"),
                    format!("allowed: {}", list(table.variants().iter().map(|each| each.value))),
                ),
            }
            if let Some(variant) = read.variant {
                read.here = format!("{here} {selector} \"{variant}\"");
            }
        }
        read.entries(entries, problems);
        read
    }

    /// Reads a table whose selector is in another table.
    pub(crate) fn read_variant(
        table: &'static Table,
        variant: &'static str,
        here: &str,
        origin: &Origin,
        entries: &[Entry],
        problems: &mut Problems,
    ) -> Self {
        let mut read = Self {
            table,
            variant: Some(variant),
            here: here.to_owned(),
            origin: origin.clone(),
            fields: Vec::new(),
            broken: Vec::new(),
        };
        read.entries(entries, problems);
        read
    }

    /// Adds the keys of another table of the file that this one does not have, with their places.
    pub(crate) fn layer(&mut self, base: &Self) {
        for key in self.table.keys(self.variant) {
            let Some(field) = base.fields.iter().find(|field| field.key.name == key.name) else {
                continue;
            };
            if !self.is_there(key.name) && self.meets(key.needs) {
                self.fields.push(Field { key, ..field.clone() });
            }
        }
        self.broken.extend(&base.broken);
    }

    /// Adds the keys of `base` that this table does not have.
    pub(crate) fn inherit(&mut self, base: &Self) {
        for key in self.table.keys(self.variant) {
            let Some(field) = base.fields.iter().find(|field| field.key.name == key.name) else {
                continue;
            };
            if !self.is_there(key.name) && self.meets(key.needs) {
                self.fields.push(Field { key, setting: field.setting.clone(), origin: None });
            }
        }
    }

    /// Checks conditions between keys, and fills in the defaults.
    pub(crate) fn complete(&mut self, problems: &mut Problems) {
        if self.table.selector.is_some() && self.variant.is_none() {
            return;
        }
        self.check_needs(problems);
        for group in self.table.groups_of(self.variant) {
            if group.rule == Rule::ExactlyOne {
                self.check_exactly_one(group.keys, problems);
            }
        }
        for key in self.table.keys(self.variant) {
            if self.is_there(key.name) || !self.meets(key.needs) {
                continue;
            }
            match key.default {
                Default::Required if !self.surely_meets(key.needs) => {}
                Default::Required if matches!(key.kind, Kind::List) => {}
                Default::Required => problems.add_with_help(
                    &self.origin,
                    format!("{} needs `{}`", self.here_with(key.needs), key.name),
                    format!("{}: {}", key.kind.expects(), lower_first(key.doc)),
                ),
                Default::Value(value) => {
                    let node = Node::parse_set(value, &self.origin);
                    // A test of the tables catches defaults that their own kind refuses.
                    if let Ok(setting) = decode(key, &node) {
                        self.fields.push(Field { key, setting, origin: None });
                    }
                }
                Default::Absent(_) | Default::Derived(_) | Default::Inherited | Default::Preset => {
                }
            }
        }
    }

    /// The setting of a key, whether given, inherited or default.
    pub(crate) fn setting(&self, name: &str) -> Option<&Setting> {
        self.fields.iter().find(|field| field.key.name == name).map(|field| &field.setting)
    }

    /// Where a key was given; otherwise where the table is.
    pub(crate) fn origin_of(&self, name: &str) -> &Origin {
        self.given(name).unwrap_or(&self.origin)
    }

    /// Where a key was given, if it was given.
    pub(crate) fn given(&self, name: &str) -> Option<&Origin> {
        let field = self.fields.iter().find(|field| field.key.name == name)?;
        field.origin.as_ref()
    }

    /// Sets a key that the table does not give.
    pub(crate) fn fill(&mut self, name: &str, setting: Setting, origin: Option<Origin>) {
        if let Some(key) = self.table.find(name, self.variant) {
            self.fields.retain(|field| field.key.name != name);
            self.fields.push(Field { key, setting, origin });
        }
    }

    /// Reports a key that cannot be combined with `name`; true if there is one.
    pub(crate) fn refuse_exclusive(&self, name: &str, problems: &mut Problems) -> bool {
        let Some(field) = self.fields.iter().find(|field| field.key.name == name) else {
            return false;
        };
        let mut refused = false;
        for other in field.key.excludes {
            if let Some(place) = self.given(other) {
                refused = true;
                problems.add_with_help(
                    self.origin_of(name),
                    format!("`{name}` and `{other}` cannot be combined"),
                    format!("`{other}` is at {place}; `{name}`: {}", lower_first(field.key.doc)),
                );
            }
        }
        refused
    }

    /// Forgets a key.
    pub(crate) fn remove(&mut self, name: &str) {
        self.fields.retain(|field| field.key.name != name);
    }

    /// Keys and settings, in canonical order.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&'static Key, &Setting)> {
        self.table
            .keys(self.variant)
            .filter_map(|key| self.setting(key.name).map(|setting| (key, setting)))
    }

    /// A setting that is text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.setting(name) {
            Some(Setting::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The value of a key that has an enumeration of its own.
    pub(crate) fn chosen<T: Chosen>(&self) -> Option<T> {
        self.choice_of(T::KEY)
    }

    /// The value of a key whose enumeration is shared by several keys.
    pub(crate) fn choice_of<T: Chosen>(&self, name: &str) -> Option<T> {
        T::of(self.text(name)?)
    }

    /// The selector's value; `None` if the table has no selector or the value is invalid.
    pub(crate) fn selected<T: Chosen>(&self) -> Option<T> {
        T::of(self.variant?)
    }

    /// False for a table that is in the file but switched off.
    pub(crate) fn enabled(&self) -> bool {
        self.flag("enabled") != Some(false)
    }

    /// A setting that is a flag.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.setting(name) {
            Some(&Setting::Flag(flag)) => Some(flag),
            _ => None,
        }
    }

    /// A setting that is a whole number.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        match self.setting(name) {
            Some(&Setting::Count(count)) => Some(count),
            _ => None,
        }
    }

    /// A setting that is a probability.
    pub(crate) fn fraction(&self, name: &str) -> Option<f64> {
        match self.setting(name) {
            Some(&Setting::Fraction(share)) => Some(share),
            _ => None,
        }
    }

    /// A setting that is a number with a fraction.
    pub(crate) fn real(&self, name: &str) -> Option<f64> {
        match self.setting(name) {
            Some(&Setting::Real(real)) => Some(real),
            _ => None,
        }
    }

    /// A setting that is a length of time.
    pub(crate) fn time(&self, name: &str) -> Option<Duration> {
        match self.setting(name) {
            Some(&Setting::Time(time)) => Some(time),
            _ => None,
        }
    }

    /// A setting that is a bit rate.
    pub(crate) fn rate(&self, name: &str) -> Option<Rate> {
        match self.setting(name) {
            Some(&Setting::Rate(rate)) => Some(rate),
            _ => None,
        }
    }

    fn entries(&mut self, entries: &[Entry], problems: &mut Problems) {
        for entry in entries {
            let name = entry.key.as_str();
            let own = || self.table.keys(self.variant).filter(|key| key.subtable() == Some(name));
            match &entry.node.value {
                Value::Table(inner) if self.table.has_subtable(name) => {
                    for each in inner {
                        self.entry(&format!("{name}.{}", each.key), each, problems);
                    }
                }
                found if own().next().is_some() => problems.add_with_help(
                    &entry.node.origin,
                    format!("`{name}` expects a table, not {}", found.describe()),
                    format!("it has the keys {}", list(own().map(|key| format!("`{}`", key.name)))),
                ),
                _ => self.entry(name, entry, problems),
            }
        }
    }

    fn entry(&mut self, name: &str, entry: &Entry, problems: &mut Problems) {
        let Some(key) = self.table.find(name, self.variant) else {
            unknown_key(name, &entry.origin, self.table, self.variant, &self.here, problems);
            return;
        };
        // Without a variant, a key may have several meanings: judge the selector alone.
        let judged = self
            .table
            .selector
            .is_none_or(|selector| self.variant.is_some() || selector == key.name);
        if !judged || matches!(key.kind, Kind::Table | Kind::List) {
            return;
        }
        match decode(key, &entry.node) {
            Ok(setting) => {
                let origin = Some(entry.node.origin.clone());
                self.fields.push(Field { key, setting, origin });
            }
            Err((message, help)) => {
                self.broken.push(key.name);
                match help {
                    Some(help) => problems.add_with_help(&entry.node.origin, message, help),
                    None => problems.add(&entry.node.origin, message),
                }
            }
        }
    }

    /// True if a key has a setting, or was given with an invalid value.
    pub(crate) fn is_there(&self, name: &str) -> bool {
        self.setting(name).is_some() || self.broken.contains(&name)
    }
}

fn variant(table: &Table, node: &Node) -> Option<&'static str> {
    let Value::Text(text) = &node.value else { return None };
    table.variants().iter().map(|choice| choice.value).find(|value| value == text)
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        // An acronym keeps its capitals.
        Some(first) if chars.clone().next().is_some_and(char::is_lowercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}
