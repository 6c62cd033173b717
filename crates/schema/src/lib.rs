//! JSON schemas of all documents that the Rust code writes: summaries of runs, findings, reports on captures,
//! and reports of emulations.
//!
//! This crate is not part of the product. [`text`] returns the content of `documents.schema.json`,
//! from which `dev/airpath_dev/document_types.py` generates the types for Python and TypeScript.
//!
//! It may use: `record`, `capture`, `findings`, `emu`. Start reading at [`documents`].

use airpath_capture::{CaptureReport, Packets, Segments, View};
use airpath_emu::{Environment, FailedFlow, FlowSockets, Parity, ProgramReport, Report, Snapshot};
use airpath_findings::{Explanation, variants};
use airpath_record::RunSummary;
use schemars::generate::SchemaSettings;

/// The schema of each type, by name. References point into `$defs`.
///
/// ```
/// let types = airpath_schema::documents();
/// let goodput = &types["FlowSummary"]["properties"]["goodput_mbps"];
/// assert_eq!(goodput["type"], serde_json::json!(["number", "null"]));
/// ```
pub fn documents() -> serde_json::Map<String, serde_json::Value> {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    macro_rules! add {
        ($($document:ty,)+) => {$(
            generator.subschema_for::<$document>();
        )+};
    }
    add! {
        RunSummary,
        Explanation,
        variants::Row,
        CaptureReport,
        Segments,
        Packets,
        View,
        Report,
        Environment,
        FailedFlow,
        FlowSockets,
        Parity,
        ProgramReport,
        Snapshot,
    }
    generator.take_definitions(true)
}

/// The content of `documents.schema.json`: a line for each type.
pub fn text() -> String {
    let types: Vec<String> =
        documents().iter().map(|(name, schema)| format!("\"{name}\": {schema}")).collect();
    format!(
        "{{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\", \"$defs\": {{\n{}\n}}}}\n",
        types.join(",\n")
    )
}
