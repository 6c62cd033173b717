//! Tables as Arrow IPC streams, one after another in one block of memory.

use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::RecordBatch;
use serde_json::{Value, json};

use crate::failure::Failure;

/// The streams written so far.
#[derive(Default)]
pub(crate) struct Streams(Vec<u8>);

impl Streams {
    /// Appends a stream for each table. Returns name, rows, offset and bytes of each.
    pub(crate) fn write(&mut self, tables: &[(&str, Vec<RecordBatch>)]) -> Result<Value, Failure> {
        let mut list = Vec::new();
        for (name, table) in tables {
            // Arrow for JavaScript reads columns in place, which have to begin at multiples of 8.
            self.0.resize(self.0.len().next_multiple_of(64), 0);
            let offset = self.0.len();
            self.append(table).map_err(|error| Failure::Error(format!("table {name}: {error}")))?;
            let bytes = self.0.len() - offset;
            let rows: usize = table.iter().map(RecordBatch::num_rows).sum();
            list.push(json!({ "name": name, "rows": rows, "offset": offset, "bytes": bytes }));
        }
        Ok(Value::Array(list))
    }

    /// All streams.
    pub(crate) fn bytes(self) -> Vec<u8> {
        self.0
    }

    fn append(&mut self, table: &[RecordBatch]) -> Result<(), arrow::error::ArrowError> {
        let Some(first) = table.first() else { return Ok(()) };
        let mut writer = StreamWriter::try_new(&mut self.0, &first.schema())?;
        table.iter().try_for_each(|batch| writer.write(batch))?;
        writer.finish()
    }
}
