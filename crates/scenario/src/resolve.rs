//! Writes the resolved file: every key with its value, defaults included, in canonical order.

use crate::checked::Checked;
use crate::list::List;
use crate::node::key;
use crate::radio::Radio;
use crate::read::Fields;
use crate::secret::secret_hash;
use crate::spec::Privacy;
use crate::stage::Stage;
use crate::value::{Setting, toml_value};

/// Writes a document that has no problems.
pub(crate) fn write(document: &Checked) -> String {
    let mut out = String::new();
    table(&mut out, None, &document.root);
    table(&mut out, Some("[run]"), &document.run);
    if let (emulation, true) = &document.emulation {
        table(&mut out, Some("[emulation]"), emulation);
    }
    if let Some(core) = &document.core {
        table(&mut out, Some("[core]"), &core.fields);
    }
    stages(&mut out, "[[path.down]]", &document.down);
    stages(&mut out, "[[path.up]]", &document.up);
    if let Some(radio) = &document.radio {
        write_radio(&mut out, radio);
    }
    for (name, fields) in &document.profiles {
        table(&mut out, Some(&format!("[profile.{}]", key(name))), fields);
    }
    for flow in document.flows.in_order() {
        table(&mut out, Some("[[flow]]"), flow);
    }
    for program in document.programs.in_order() {
        table(&mut out, Some("[[program]]"), program);
    }
    out
}

fn stages(out: &mut String, header: &str, stages: &List<Stage>) {
    for stage in stages.in_order() {
        table(out, Some(header), &stage.fields);
    }
}

/// Writes the radio. Every UE gets every table, so `[radio]` needs only the cell's.
fn write_radio(out: &mut String, radio: &Radio) {
    table(out, Some("[radio]"), &radio.fields);
    table(out, Some("[radio.cell]"), &radio.cell);
    for ue in &radio.ues {
        table(out, Some("[[radio.ue]]"), &ue.fields);
        for (name, fields) in &ue.tables.parts {
            table(out, Some(&format!("[radio.ue.{name}]")), fields);
        }
    }
    for carrier in &radio.carriers {
        table(out, Some("[[radio.carrier]]"), &carrier.fields);
        table(out, Some("[radio.carrier.cell]"), &carrier.own_cell());
        for (name, fields) in carrier.parts() {
            table(out, Some(&format!("[radio.carrier.{name}]")), fields);
        }
    }
    for neighbour in &radio.neighbours {
        table(out, Some("[[radio.neighbour]]"), &neighbour.fields);
        table(out, Some("[radio.neighbour.cell]"), &neighbour.cell);
        for (name, fields) in &neighbour.tables.parts {
            table(out, Some(&format!("[radio.neighbour.{name}]")), fields);
        }
    }
    for handover in &radio.handovers {
        table(out, Some("[[radio.handover]]"), handover);
    }
    for outage in &radio.outages {
        table(out, Some("[[radio.outage]]"), outage);
    }
    if let Some(mobility) = &radio.mobility {
        table(out, Some("[radio.mobility]"), mobility);
    }
    if let Some(split) = &radio.split {
        table(out, Some("[radio.split]"), split);
    }
}

fn table(out: &mut String, header: Option<&str>, fields: &Fields) {
    if let Some(header) = header {
        out.push('\n');
        out.push_str(header);
        out.push('\n');
    }
    for (key, setting) in fields.settings() {
        let written = match (key.privacy, setting) {
            (Privacy::Location, _) => continue,
            (Privacy::Secret, Setting::Text(secret)) => {
                let imsi = fields.text("imsi").unwrap_or_default();
                toml::Value::String(secret_hash(key.name, imsi, secret)).to_string()
            }
            _ => toml_value(key, setting),
        };
        out.push_str(key.name);
        out.push_str(" = ");
        out.push_str(&written);
        out.push('\n');
    }
}
