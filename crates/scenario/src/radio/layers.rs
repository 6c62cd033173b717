//! Layers of tables: those of a UE override those of `[radio]`, and these override the preset's.

use std::path::Path;
use std::sync::Arc;

use airpath_radio::channel::{ChannelTrace, LogColumn, Missing};

use super::parts::part_keys;
use crate::node::{Node, Value};
use crate::problem::Problems;
use crate::read::Fields;
use crate::spec::{MissingValue, PARTS, SignalColumn};
use crate::traces::{ChannelFile, Traces};
use crate::value::Setting;

/// The tables given in one place: a preset, `[radio]`, a `[[radio.ue]]` or `[[radio.neighbour]]`.
pub(super) struct Layer {
    tables: Vec<(&'static str, Fields)>,
    /// Empty tables that stand for those not given.
    none: Vec<(&'static str, Fields)>,
}

impl Layer {
    /// Reads the tables given. `here` is the dotted path for messages; empty for a preset.
    pub(super) fn read(
        node: &Node,
        here: &str,
        access: &'static str,
        problems: &mut Problems,
    ) -> Self {
        let (mut tables, mut none) = (Vec::new(), Vec::new());
        for (name, table) in part_keys() {
            let header = match here {
                "" => format!("[{name}]"),
                _ => format!("[{here}.{name}]"),
            };
            let (origin, entries) = node.table(name, &header, problems);
            let mut fields =
                Fields::read_variant(table, access, &header, origin, entries, problems);
            if matches!(node.get(name), Some(Node { value: Value::Table(_), .. })) {
                imply(&mut fields);
                tables.push((name, fields));
            } else {
                none.push((name, fields));
            }
        }
        Self { tables, none }
    }

    /// Checks each of these tables on top of the preset alone.
    pub(super) fn check_alone(&self, preset: &Layer, problems: &mut Problems) {
        for part in PARTS {
            for (name, up) in [(Some(part.name), None), (part.up, part.up)] {
                if let Some(own) = name.and_then(|name| self.get(name)) {
                    let mut own = own.clone();
                    if up.is_some()
                        && let Some(down) = self.get(part.name)
                    {
                        own.layer(down);
                    }
                    preset.inherited_by(&mut own, part.name, up);
                    own.complete(problems);
                }
            }
        }
    }

    /// Fills in, from this preset's tables, what `fields` does not have.
    fn inherited_by(&self, fields: &mut Fields, name: &str, up: Option<&str>) {
        for name in up.into_iter().chain([name]) {
            if let Some(base) = self.get(name) {
                fields.inherit(base);
            }
        }
    }

    fn get(&self, name: &str) -> Option<&Fields> {
        self.tables.iter().find(|(known, _)| *known == name).map(|(_, fields)| fields)
    }

    fn empty(&self, name: &str) -> Option<&Fields> {
        self.none.iter().find(|(known, _)| *known == name).map(|(_, fields)| fields)
    }
}

/// All tables of a UE in one cell, complete.
pub(crate) struct Tables {
    /// The tables by key, in canonical order.
    pub(crate) parts: Vec<(&'static str, Fields)>,
    /// The recorded channels, downlink and uplink.
    pub(crate) channels: [Option<Arc<ChannelTrace>>; 2],
}

impl Tables {
    /// The table of that key.
    pub(crate) fn part(&self, name: &str) -> &Fields {
        let (_, fields) =
            self.parts.iter().find(|(known, _)| *known == name).expect("a UE has every part");
        fields
    }

    /// Reads the files with the channels.
    pub(super) fn load_channels(
        &mut self,
        directory: Option<&Path>,
        traces: &mut Traces,
        problems: &mut Problems,
    ) {
        self.channels = ["channel", "channel_up"]
            .map(|part| load_channel(self.part(part), directory, traces, problems));
    }
}

/// Combines these layers, the nearest first, and a preset.
pub(super) fn combine(layers: &[&Layer], preset: &Layer, problems: &mut Problems) -> Tables {
    let mut parts = Vec::new();
    for part in PARTS {
        for (key, up) in [(Some(part.name), None), (part.up, part.up)] {
            let Some(key) = key else { continue };
            // The nearest layer comes first.
            let names: Vec<&str> = up.into_iter().chain([part.name]).collect();
            let mut found =
                layers.iter().flat_map(|layer| names.iter().filter_map(|name| layer.get(name)));
            // Keys of the first layer that cannot be combined are reported; keys of the others that
            // do not apply are dropped.
            let empty = || layers.last().and_then(|layer| layer.empty(part.name));
            let Some(mut fields) = found.next().or_else(empty).cloned() else { continue };
            for layer in found {
                fields.layer(layer);
            }
            preset.inherited_by(&mut fields, part.name, up);
            fields.complete(problems);
            parts.push((key, fields));
        }
    }
    Tables { parts, channels: [None, None] }
}

fn load_channel(
    channel: &Fields,
    directory: Option<&Path>,
    traces: &mut Traces,
    problems: &mut Problems,
) -> Option<Arc<ChannelTrace>> {
    let file = ChannelFile {
        file: channel.text("file")?.to_owned(),
        column: match channel.chosen() {
            Some(SignalColumn::Cqi) => LogColumn::Cqi,
            // If there is no value, another problem has already been reported.
            Some(SignalColumn::Snr) | None => LogColumn::Snr,
        },
        missing: match channel.chosen() {
            Some(MissingValue::Outage) => Missing::Outage,
            Some(MissingValue::Hold) | None => Missing::Hold,
        },
    };
    let loaded = traces.load_channel(file, directory);
    loaded.map_err(|error| error.report(channel.origin_of("file"), problems)).ok()
}

/// Replaces `mu` by the `scs_khz` that it stands for.
pub(super) fn expand_mu(cell: &mut Fields, problems: &mut Problems) {
    let Some(mu) = cell.count("mu") else { return };
    if cell.refuse_exclusive("mu", problems) {
        return;
    }
    let origin = cell.given("mu").cloned();
    cell.remove("mu");
    cell.fill("scs_khz", Setting::Count(15 << mu), origin);
}

/// Sets what the presence of a table, or of some of its keys, implies.
fn imply(fields: &mut Fields) {
    if fields.table.find("enabled", fields.variant).is_some() && !fields.is_there("enabled") {
        fields.fill("enabled", Setting::Flag(true), None);
    }
    if fields.table.find("model", fields.variant).is_some() && !fields.is_there("model") {
        let models = [
            ("file", "trace"),
            ("distance_m", "process"),
            ("path_loss", "process"),
            ("sinr_db", "constant"),
        ];
        if let Some((_, model)) = models.iter().find(|(key, _)| fields.is_there(key)) {
            fields.fill("model", Setting::Text((*model).to_owned()), None);
        }
    }
}
