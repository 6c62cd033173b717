//! How a row type becomes a table, and a table a file.

use std::fs::File;
use std::path::{Path, PathBuf};

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
        /// What the system said.
        source: std::io::Error,
    },
    /// The Parquet writer refused.
    #[error("cannot write {path}: {source}", path = path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: parquet::errors::ParquetError,
    },
}

impl RecordError {
    /// What the system or the writer said, without the file.
    pub fn reason(&self) -> String {
        match self {
            Self::Write { source, .. } => source.to_string(),
            Self::Parquet { source, .. } => source.to_string(),
        }
    }
}

/// Writes one table to a new file; `metadata` goes into the file's footer.
///
/// The bytes depend on the table and the metadata alone.
pub fn write_parquet(
    path: &Path,
    table: &RecordBatch,
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
    let mut writer =
        ArrowWriter::try_new(file, table.schema(), Some(properties)).map_err(parquet)?;
    writer.write(table).map_err(parquet)?;
    writer.close().map_err(parquet)?;
    handle.sync_all().map_err(io)
}

/// Declares a row struct and the columnar buffer it is pushed into. What is said of the rows and of
/// each field becomes the reference of tables; of a field that may be null "Null: …" ends it.
macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        $row:ident => $builder:ident {
            $($(#[doc = $field_doc:literal])+ $field:ident: $type:ty,)*
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug)]
        pub struct $row {
            $($(#[doc = $field_doc])+ pub $field: $type,)*
        }

        #[derive(Default, Debug)]
        pub(crate) struct $builder {
            $($field: <$type as crate::column::Column>::Builder,)*
        }

        impl $builder {
            /// What stands above, for the reference of tables.
            pub(crate) const ABOUT: crate::column::AboutTable = crate::column::AboutTable {
                text: concat!($($doc),+),
                columns: &[$(crate::column::AboutColumn {
                    name: stringify!($field),
                    text: concat!($($field_doc),+),
                    kind: <$type as crate::column::Column>::KIND,
                    nullable: <$type as crate::column::Column>::NULLABLE,
                },)*],
            };

            pub(crate) fn push(&mut self, row: $row) {
                $(crate::column::Column::append(row.$field, &mut self.$field);)*
            }

            pub(crate) fn finish(&mut self, names: &crate::Names) -> arrow::record_batch::RecordBatch {
                let columns = [$((
                    stringify!($field),
                    <$type as crate::column::Column>::NULLABLE,
                    <$type as crate::column::Column>::finish(&mut self.$field, names),
                ),)*];
                let fields: Vec<_> = columns
                    .iter()
                    .map(|(name, nullable, array)| {
                        arrow::datatypes::Field::new(*name, arrow::array::Array::data_type(array).clone(), *nullable)
                    })
                    .collect();
                let schema = std::sync::Arc::new(arrow::datatypes::Schema::new(fields));
                let arrays = columns.into_iter().map(|(_, _, array)| array).collect();
                arrow::record_batch::RecordBatch::try_new(schema, arrays)
                    .expect("every push appends to every column")
            }
        }
    };
}

pub(crate) use table;
