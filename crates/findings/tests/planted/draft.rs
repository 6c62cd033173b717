//! A scenario under construction: tables of keys, and the direction of the data.

use std::collections::BTreeMap;

use airpath_base::Stream;
use airpath_scenario::{Parsed, Source, parse};

/// The keys of one TOML table, in order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Table(Vec<(String, String)>);

impl Table {
    pub(crate) fn of(keys: &[(&str, &str)]) -> Self {
        Self(keys.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// Sets a key, whether or not it is already there.
    pub(crate) fn set(&mut self, key: &str, value: impl ToString) {
        let value = value.to_string();
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    pub(crate) fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.set(key, value);
        self
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.0.retain(|(known, _)| known != key);
    }

    fn text(&self, to: &mut String) {
        for (key, value) in &self.0 {
            to.push_str(&format!("{key} = {value}\n"));
        }
    }
}

/// A text as a TOML string.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// A number with four significant digits.
pub(crate) fn number(value: f64) -> String {
    let places = (3 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 9) as usize;
    format!("{value:.places$}")
}

/// A stage of a path.
pub(crate) fn stage(kind: &str) -> Table {
    Table::of(&[("stage", &quoted(kind))])
}

#[derive(Clone, Default, Debug)]
pub(crate) struct Draft {
    pub(crate) seconds: f64,
    /// Whether data goes up.
    pub(crate) up: bool,
    /// Stages in the direction of the data, and in the other direction.
    pub(crate) there: Vec<Table>,
    pub(crate) back: Vec<Table>,
    /// Tables of the radio, by the part of their name that follows `radio`; the empty name comes
    /// first.
    pub(crate) radio: BTreeMap<String, Table>,
    pub(crate) neighbours: Vec<Table>,
    pub(crate) handovers: Vec<Table>,
    pub(crate) flows: Vec<Table>,
}

impl Draft {
    pub(crate) fn text(&self) -> String {
        let mut text = format!("[run]\nduration_s = {}\n", number(self.seconds));
        let (down, up) =
            if self.up { (&self.back, &self.there) } else { (&self.there, &self.back) };
        for (direction, stages) in [("down", down), ("up", up)] {
            for one in stages {
                text.push_str(&format!("[[path.{direction}]]\n"));
                one.text(&mut text);
            }
        }
        for (name, table) in &self.radio {
            let dot = if name.is_empty() { "" } else { "." };
            text.push_str(&format!("[radio{dot}{name}]\n"));
            table.text(&mut text);
        }
        for (name, tables) in [("neighbour", &self.neighbours), ("handover", &self.handovers)] {
            for one in tables {
                text.push_str(&format!("[[radio.{name}]]\n"));
                one.text(&mut text);
            }
        }
        for flow in &self.flows {
            text.push_str("[[flow]]\n");
            flow.text(&mut text);
            if self.up && flow.get("direction").is_none() {
                text.push_str("direction = \"up\"\n");
            }
        }
        text
    }

    pub(crate) fn radio(&mut self, table: &str) -> &mut Table {
        self.radio.entry(table.to_owned()).or_default()
    }

    /// The table of a part of the radio for the direction of the data, `rlc` or `rlc_up`: a key set
    /// for the downlink alone leaves the uplink as it is.
    pub(crate) fn radio_of_data(&mut self, part: &str) -> &mut Table {
        let direction = if self.up { "_up" } else { "" };
        self.radio(&format!("{part}{direction}"))
    }

    /// Name of the direction of the data.
    pub(crate) fn direction(&self) -> &'static str {
        if self.up { "up" } else { "down" }
    }

    /// Stages of the downlink and of the uplink.
    pub(crate) fn down_and_up(&mut self) -> [&mut Vec<Table>; 2] {
        let Self { there, back, .. } = self;
        if self.up { [back, there] } else { [there, back] }
    }

    pub(crate) fn parsed(&self) -> Parsed {
        let text = self.text();
        let source = Source { name: "planted.toml", text: &text, directory: None };
        parse(&source, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// The transfers among the `[[flow]]` tables.
    pub(crate) fn transfers(&mut self) -> impl Iterator<Item = &mut Table> {
        self.flows
            .iter_mut()
            .filter(|flow| matches!(flow.get("kind"), Some("\"bulk\"" | "\"file\"")))
    }
}

/// A random stream to draw from.
pub(crate) struct Random(Stream);

impl Random {
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        Self(Stream::new(seed, name))
    }

    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    pub(crate) fn log(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        ((self.0.unit() * count as f64) as usize).min(count - 1)
    }

    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.0.unit() < share
    }

    pub(crate) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(crate) fn seed(&mut self) -> u64 {
        (self.0.unit() * 1e15) as u64
    }
}
