//! The resolved file: every key with its value, defaults included, in canonical order.

use crate::decimal::unscaled;
use crate::document::{Document, Stage};
use crate::profiles::key;
use crate::read::Fields;
use crate::spec::{Key, Kind};
use crate::value::Setting;

/// Writes a document without problems.
pub(crate) fn write(document: &Document) -> String {
    let mut out = String::new();
    table(&mut out, None, &document.root);
    table(&mut out, Some("[run]"), &document.run);
    stages(&mut out, "[[path.down]]", &document.down);
    stages(&mut out, "[[path.up]]", &document.up);
    for (name, fields) in &document.profiles {
        table(&mut out, Some(&format!("[profile.{}]", key(name))), fields);
    }
    for flow in &document.flows {
        table(&mut out, Some("[[flow]]"), flow);
    }
    out
}

fn stages(out: &mut String, header: &str, stages: &[Stage]) {
    for stage in stages {
        table(out, Some(header), &stage.fields);
    }
}

fn table(out: &mut String, header: Option<&str>, fields: &Fields) {
    if let Some(header) = header {
        out.push('\n');
        out.push_str(header);
        out.push('\n');
    }
    for (key, setting) in fields.settings() {
        out.push_str(key.name);
        out.push_str(" = ");
        out.push_str(&toml_value(key, setting));
        out.push('\n');
    }
}

/// A setting in TOML, in the unit of its key.
pub(crate) fn toml_value(key: &Key, setting: &Setting) -> String {
    match (setting, key.kind) {
        (Setting::Text(text), _) => toml::Value::String(text.clone()).to_string(),
        (Setting::Flag(flag), _) => flag.to_string(),
        (Setting::Count(count), _) => count.to_string(),
        (Setting::Share(share), _) => share.to_string(),
        (Setting::Time(time), Kind::Time { unit, .. }) => unscaled(time.as_nanos(), unit.power()),
        // Only a key of kind `Time` holds a time.
        (Setting::Time(time), _) => time.as_nanos().to_string(),
        (Setting::Rate(rate), _) => unscaled(rate.bps(), 6),
    }
}
