//! Makes tables of row types.

/// Declares a row struct and the columnar buffer to which its rows are pushed. The doc comments of
/// the rows and of each field become the reference of tables; for a field that may be null they end
/// with "Null: …".
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
            /// Rows that are not in the columns yet.
            waiting: Vec<$row>,
            $($field: <$type as crate::column::Column>::Builder,)*
        }

        impl $builder {
            /// The doc comments, for the reference of tables.
            pub(crate) const ABOUT: crate::column::AboutTable = crate::column::AboutTable {
                text: concat!($($doc),+),
                columns: &[$(crate::column::AboutColumn {
                    name: stringify!($field),
                    text: concat!($($field_doc),+),
                    kind: <$type as crate::column::Column>::KIND,
                    nullable: <$type as crate::column::Column>::NULLABLE,
                },)*],
            };

            #[inline]
            pub(crate) fn push(&mut self, row: $row) {
                self.waiting.push(row);
                if self.waiting.len() == crate::column::ROWS_AT_ONCE {
                    self.append_waiting();
                }
            }

            /// Whether rows wait to be put into the columns.
            #[allow(dead_code, reason = "of interest to few tables")]
            pub(crate) fn has_waiting(&self) -> bool {
                !self.waiting.is_empty()
            }

            fn append_waiting(&mut self) {
                let rows = &self.waiting;
                if rows.is_empty() {
                    return;
                }
                $(<$type as crate::column::Column>::append_all(
                    rows,
                    |row| Clone::clone(&row.$field),
                    &mut self.$field,
                );)*
                self.waiting.clear();
            }

            pub(crate) fn finish(&mut self, names: &crate::Names) -> arrow::record_batch::RecordBatch {
                self.append_waiting();
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
