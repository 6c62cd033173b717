//! Writes a table to a Parquet file.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

/// Why a table could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file could not be created, written or flushed.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The Parquet writer failed.
    #[error("cannot write {path}: {source}", path = path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The writer's error.
        source: parquet::errors::ParquetError,
    },
}

impl RecordError {
    /// The error of the system or the writer, without the file.
    pub fn reason(&self) -> String {
        match self {
            Self::Write { source, .. } => source.to_string(),
            Self::Parquet { source, .. } => source.to_string(),
        }
    }
}

/// Writes one table, of one or more batches, to a new file; `metadata` goes into the file's footer.
///
/// The bytes depend only on the table and the metadata.
pub fn write_parquet(
    path: &Path,
    table: &[RecordBatch],
    metadata: &[(String, String)],
) -> Result<(), RecordError> {
    let io = |source| RecordError::Write { path: path.to_owned(), source };
    let parquet = |source| RecordError::Parquet { path: path.to_owned(), source };
    let pairs =
        metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("airpath ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(pairs))
        .build();
    let file = File::create_new(path).map_err(io)?;
    let handle = file.try_clone().map_err(io)?;
    let schema = table.first().map_or_else(|| Schema::empty().into(), RecordBatch::schema);
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).map_err(parquet)?;
    table.iter().try_for_each(|batch| writer.write(batch)).map_err(parquet)?;
    writer.close().map_err(parquet)?;
    handle.sync_all().map_err(io)
}
