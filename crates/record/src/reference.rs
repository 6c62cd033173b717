//! The reference of tables in Markdown, generated from their declarations.

use std::fmt::Write as _;

use crate::column::{AboutColumn, AboutTable};
use crate::runs;
use crate::tables::ABOUT;

const CAMPAIGNS: &str = "
# Tables of campaigns

A campaign has these tables instead, with rows for every run. Their first columns are `run` (its number in the
campaign), `cell` (the number of its settings, whatever the seed), `scenario` and `seed`, and one column for each
variable of the campaign. The table `runs` also has `key` (the hash of the run's scenario, seed, version and core) and
`explained` (`off`, `quick` or `full`). [Campaigns](../guides/campaigns.md) says where the files are. The tables `flows`
and `groups` have the columns above.
";

const INTRODUCTION: &str = "\
<!-- Generated from crates/record/src/tables.rs; rewrite it with
     AIRPATH_BLESS=1 cargo test -p airpath-record reference -->

# Tables

A run directory has one Parquet file for each table; with several seeds, each `seed-N/` has its own files. In
Python, `run.table(NAME)` and attributes like `run.samples` are polars frames whose first column is `seed`.
Simulations and emulations write the same columns. Times are nanoseconds since the start of the run. The type `name`
is dictionary-encoded text: the name of a flow, a link, a UE or a cell. [Metrics](../concepts/metrics.md) says how each
figure is measured.
";

/// Units by the end of a column's name, quantiles aside.
const SUFFIXES: [(&str, &str); 15] = [
    ("_ns", "ns"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_mbps", "Mb/s"),
    ("_db", "dB"),
    ("_segments", "segments"),
    ("_bytes", "bytes"),
    ("bytes_delivered", "bytes"),
    ("_packets", "packets"),
    ("_fraction", "share"),
    ("_samples", "samples"),
    ("_count", "times"),
    ("segments_sent", "segments"),
    ("_retransmissions", "times"),
    ("_reductions", "times"),
];

/// Units of columns whose names do not end in one.
const UNITS: [(&str, &str); 25] = [
    ("streams", "flows"),
    ("jain_index", "index"),
    ("sequence", "number"),
    ("value", "by kind"),
    ("packets", "packets"),
    ("packets_sent", "packets"),
    ("packets_lost", "packets"),
    ("count", "samples"),
    ("prbs", "PRBs"),
    ("blocks", "blocks"),
    ("lost_blocks", "blocks"),
    ("bytes", "bytes"),
    ("mcs", "index"),
    ("bler", "share"),
    ("awake", "share"),
    ("grants", "times"),
    ("scheduling_requests", "times"),
    ("buffer_status_reports", "times"),
    ("random_accesses", "times"),
    ("transmission", "number"),
    ("power", "Mb/s²"),
    ("tail_loss_probes", "times"),
    ("events", "times"),
    ("jain_index_down", "index"),
    ("jain_index_up", "index"),
];

/// The whole reference.
pub fn tables_markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    describe(&mut out, ABOUT);
    out += CAMPAIGNS;
    describe(&mut out, runs::ABOUT);
    out
}

fn describe(out: &mut String, tables: impl IntoIterator<Item = (&'static str, AboutTable)>) {
    for (name, table) in tables {
        let _ = write!(out, "\n## {name}\n\n{}\n\n", table.text.trim());
        *out += "| column | type | unit | is | null |\n|---|---|---|---|---|\n";
        for column in table.columns {
            let (is, null) = column.meaning();
            let AboutColumn { name, kind, .. } = column;
            let _ = writeln!(out, "| `{name}` | {kind} | {} | {is} | {null} |", column.unit());
        }
    }
}

impl AboutColumn {
    fn meaning(&self) -> (&'static str, &'static str) {
        let (is, null) = self.text.split_once("Null: ").unwrap_or((self.text, "never"));
        assert_eq!(null != "never", self.nullable, "what of {} is null?", self.name);
        (is.trim().trim_end_matches('.'), null.trim_end_matches('.'))
    }

    /// The unit; text and names have none.
    fn unit(&self) -> &'static str {
        if matches!(self.kind, "text" | "name" | "bool") {
            return "";
        }
        let quantiles = ["_min", "_mean", "_p50", "_p95", "_p99"];
        let name = quantiles.iter().find_map(|end| self.name.strip_suffix(end));
        let name = name.unwrap_or(self.name);
        let exact = UNITS.iter().find(|(other, _)| *other == name);
        let suffix = || SUFFIXES.iter().find(|(end, _)| name.ends_with(end));
        exact.or_else(suffix).unwrap_or_else(|| panic!("{name} has no unit")).1
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_committed_reference_of_tables_is_the_generated_one() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/tables.md");
        let generated = tables_markdown();
        if std::env::var_os("AIRPATH_BLESS").is_some() {
            std::fs::write(&path, &generated).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == generated,
            "docs/reference/tables.md is out of date; \
             run AIRPATH_BLESS=1 cargo test -p airpath-record reference"
        );
    }

    fn column(text: &'static str, kind: &'static str, nullable: bool) -> AboutColumn {
        AboutColumn { name: "oddity", text, kind, nullable }
    }

    #[test]
    #[should_panic(expected = "what of oddity is null?")]
    fn what_may_be_null_says_when() {
        column("Something.", "text", true).meaning();
    }

    #[test]
    #[should_panic(expected = "oddity has no unit")]
    fn a_number_has_a_unit() {
        column("Something.", "f64", false).unit();
    }
}
