//! Conditions between the keys of one table.

use super::Fields;
use crate::problem::Problems;
use crate::spec::{Default, Key, Need};
use crate::suggest::list;
use crate::value::Setting;
use crate::value::toml_value;

impl Fields {
    pub(super) fn check_needs(&self, problems: &mut Problems) {
        for field in &self.fields {
            let Some(origin) = &field.origin else { continue };
            match field.key.needs {
                Some(Need::Given(other)) if !self.meets(field.key.needs) => {
                    problems.add(origin, format!("`{}` needs `{other}`", field.key.name));
                }
                Some(Need::Is(other, wanted)) if !self.meets(field.key.needs) => {
                    let actual = self.written(other);
                    let name = field.key.name;
                    problems.add(
                        origin,
                        format!("`{name}` needs {other} = \"{wanted}\", but it is {actual}"),
                    );
                }
                Some(Need::Begins(other, wanted)) if !self.meets(field.key.needs) => {
                    let actual = self.choice(other).unwrap_or_default();
                    let name = field.key.name;
                    problems.add(
                        origin,
                        format!("`{name}` needs {other} = \"{wanted}…\", but it is \"{actual}\""),
                    );
                }
                Some(Need::Not(other, unwanted)) if !self.meets(field.key.needs) => {
                    let name = field.key.name;
                    problems.add(
                        origin,
                        format!("`{name}` has no effect with {other} = \"{unwanted}\""),
                    );
                }
                _ => {}
            }
        }
    }

    pub(super) fn check_exactly_one(&self, keys: &[Key], problems: &mut Problems) {
        let names = list(keys.iter().map(|key| format!("`{}`", key.name)));
        let given: Vec<_> = keys.iter().filter_map(|key| self.given(key.name)).collect();
        match given[..] {
            _ if keys.iter().any(|key| self.broken.contains(&key.name)) => {}
            [_] => {}
            [] => problems.add(&self.origin, format!("{} needs one of {names}", self.here)),
            [first, second, ..] => problems.add_with_help(
                second,
                format!("{} takes only one of {names}", self.here),
                format!("the other key is at {first}"),
            ),
        }
    }

    pub(super) fn meets(&self, need: Option<Need>) -> bool {
        match need {
            None => true,
            Some(Need::Given(other)) => self.is_there(other),
            // A value that another problem left open does not count against this key.
            Some(Need::Is(other, value)) => {
                self.broken.contains(&other) || self.has(other, value) != Some(false)
            }
            Some(Need::Begins(other, start)) => {
                self.broken.contains(&other)
                    || self.choice(other).is_none_or(|choice| choice.starts_with(start))
            }
            Some(Need::Not(other, value)) => {
                self.broken.contains(&other) || self.has(other, value) != Some(true)
            }
            Some(Need::On(other)) => self.flag(other) == Some(true),
        }
    }

    /// Whether a key has this word; `None` while it has no value.
    fn has(&self, name: &str, word: &str) -> Option<bool> {
        match self.setting(name) {
            Some(Setting::Text(text)) => Some(text == word),
            Some(_) => Some(false),
            None => self.choice(name).map(|choice| choice == word),
        }
    }

    /// Whether a condition is certainly met: a value that another problem left open does not count.
    pub(super) fn surely_meets(&self, need: Option<Need>) -> bool {
        match need {
            Some(Need::Is(other, value)) => {
                !self.broken.contains(&other) && self.choice(other) == Some(value)
            }
            _ => self.meets(need),
        }
    }

    /// The value of a choice or name, given or default.
    pub(crate) fn choice(&self, name: &str) -> Option<&str> {
        match self.setting(name) {
            Some(Setting::Text(text)) => Some(text),
            Some(_) => None,
            None => match self.table.find(name, self.variant)?.default {
                Default::Value(value) => Some(value.trim_matches('"')),
                _ => None,
            },
        }
    }

    /// The value of a key, given or default, as written in TOML.
    fn written(&self, name: &str) -> String {
        let field = self.fields.iter().find(|field| field.key.name == name);
        field.map_or_else(
            || format!("{:?}", self.choice(name).unwrap_or_default()),
            |field| toml_value(field.key, &field.setting),
        )
    }

    pub(super) fn here_with(&self, need: Option<Need>) -> String {
        match need {
            Some(Need::Is(other, value)) => format!("{} with {other} = \"{value}\"", self.here),
            _ => self.here.clone(),
        }
    }
}
