//! Rust types that can be columns.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanBuilder, DictionaryArray, Int32Array, Int32Builder, StringArray,
    StringBuilder,
};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};

use crate::values::{Nullable, Values};

/// Index of a flow or link in [`Names`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name(pub u32);

/// The names to which [`Name`] refers.
#[derive(Clone, Debug, Default)]
pub struct Names(Vec<String>);

impl Names {
    /// Adds a name.
    pub fn add(&mut self, name: &str) -> Name {
        self.0.push(name.to_owned());
        Name(self.0.len() as u32 - 1)
    }

    /// The name of an index that `add` returned.
    pub fn name(&self, name: Name) -> &str {
        &self.0[name.0 as usize]
    }
}

/// A value that appends itself to a column and knows the column's Arrow form.
pub(crate) trait Column {
    type Builder: Default;
    const NULLABLE: bool = false;
    /// The column's type in the tables.
    const KIND: &'static str;
    fn append(self, builder: &mut Self::Builder);
    /// Appends this column's values of several rows.
    fn append_all<R>(rows: &[R], value: impl Fn(&R) -> Self, builder: &mut Self::Builder)
    where
        Self: Sized,
    {
        rows.iter().for_each(|row| value(row).append(builder));
    }
    fn finish(builder: &mut Self::Builder, names: &Names) -> ArrayRef;
}

/// Most rows that wait before they are appended to the columns. Appending them one by one takes
/// most of a row's time, because it has many columns.
pub(crate) const ROWS_AT_ONCE: usize = 64;

macro_rules! primitive {
    ($($rust:ident => $arrow:ty),*) => {$(
        impl Column for $rust {
            type Builder = Values<$arrow>;
            const KIND: &'static str = stringify!($rust);
            fn append(self, builder: &mut Self::Builder) {
                builder.append(self);
            }
            fn append_all<R>(rows: &[R], value: impl Fn(&R) -> Self, builder: &mut Self::Builder) {
                for rows in rows.chunks(ROWS_AT_ONCE) {
                    let mut values = [Self::default(); ROWS_AT_ONCE];
                    values.iter_mut().zip(rows).for_each(|(slot, row)| *slot = value(row));
                    builder.append_slice(&values[..rows.len()]);
                }
            }
            fn finish(builder: &mut Self::Builder, _names: &Names) -> ArrayRef {
                Arc::new(builder.finish_array(None))
            }
        }
        impl Column for Option<$rust> {
            type Builder = Nullable<$arrow>;
            const KIND: &'static str = stringify!($rust);
            const NULLABLE: bool = true;
            fn append(self, builder: &mut Self::Builder) {
                builder.append(self);
            }
            fn append_all<R>(rows: &[R], value: impl Fn(&R) -> Self, builder: &mut Self::Builder) {
                let present = rows.iter().filter(|row| value(row).is_some()).count();
                // Adjacent values are nearly always both present or both null.
                if present == 0 {
                    builder.append_nulls(rows.len());
                } else if present == rows.len() {
                    for rows in rows.chunks(ROWS_AT_ONCE) {
                        let mut values = [<$rust>::default(); ROWS_AT_ONCE];
                        let slots = values.iter_mut().zip(rows);
                        slots.for_each(|(slot, row)| *slot = value(row).unwrap_or_default());
                        builder.append_slice(&values[..rows.len()]);
                    }
                } else {
                    rows.iter().for_each(|row| builder.append(value(row)));
                }
            }
            fn finish(builder: &mut Self::Builder, _names: &Names) -> ArrayRef {
                Arc::new(builder.finish())
            }
        }
    )*};
}

primitive!(i64 => Int64Type, u64 => UInt64Type, u32 => UInt32Type, f64 => Float64Type);

impl Column for bool {
    type Builder = BooleanBuilder;
    const KIND: &'static str = "bool";
    fn append(self, builder: &mut Self::Builder) {
        builder.append_value(self);
    }
    fn finish(builder: &mut Self::Builder, _names: &Names) -> ArrayRef {
        Arc::new(builder.finish())
    }
}

impl Column for Option<bool> {
    type Builder = BooleanBuilder;
    const KIND: &'static str = "bool";
    const NULLABLE: bool = true;
    fn append(self, builder: &mut Self::Builder) {
        builder.append_option(self);
    }
    fn append_all<R>(rows: &[R], value: impl Fn(&R) -> Self, builder: &mut Self::Builder) {
        if rows.iter().any(|row| value(row).is_some()) {
            rows.iter().for_each(|row| builder.append_option(value(row)));
        } else {
            builder.append_nulls(rows.len());
        }
    }
    fn finish(builder: &mut Self::Builder, _names: &Names) -> ArrayRef {
        Arc::new(builder.finish())
    }
}

impl Column for &'static str {
    type Builder = StringBuilder;
    const KIND: &'static str = "text";
    fn append(self, builder: &mut Self::Builder) {
        builder.append_value(self);
    }
    fn finish(builder: &mut Self::Builder, _names: &Names) -> ArrayRef {
        Arc::new(builder.finish())
    }
}

impl Column for Option<&'static str> {
    type Builder = StringBuilder;
    const KIND: &'static str = "text";
    const NULLABLE: bool = true;
    fn append(self, builder: &mut Self::Builder) {
        builder.append_option(self);
    }
    fn finish(builder: &mut Self::Builder, _names: &Names) -> ArrayRef {
        Arc::new(builder.finish())
    }
}

impl Column for Option<String> {
    type Builder = StringBuilder;
    const KIND: &'static str = "text";
    const NULLABLE: bool = true;
    fn append(self, builder: &mut Self::Builder) {
        builder.append_option(self);
    }
    fn finish(builder: &mut Self::Builder, _names: &Names) -> ArrayRef {
        Arc::new(builder.finish())
    }
}

impl Column for Name {
    type Builder = Values<Int32Type>;
    const KIND: &'static str = "name";
    fn append(self, builder: &mut Self::Builder) {
        builder.append(self.0 as i32);
    }
    fn append_all<R>(rows: &[R], value: impl Fn(&R) -> Self, builder: &mut Self::Builder) {
        let mut places = [0; ROWS_AT_ONCE];
        for rows in rows.chunks(ROWS_AT_ONCE) {
            places.iter_mut().zip(rows).for_each(|(place, row)| *place = value(row).0 as i32);
            builder.append_slice(&places[..rows.len()]);
        }
    }
    fn finish(builder: &mut Self::Builder, names: &Names) -> ArrayRef {
        dictionary(builder.finish_array(None), names)
    }
}

impl Column for Option<Name> {
    type Builder = Int32Builder;
    const KIND: &'static str = "name";
    const NULLABLE: bool = true;
    fn append(self, builder: &mut Self::Builder) {
        builder.append_option(self.map(|name| name.0 as i32));
    }
    fn finish(builder: &mut Self::Builder, names: &Names) -> ArrayRef {
        dictionary(builder.finish(), names)
    }
}

fn dictionary(keys: Int32Array, names: &Names) -> ArrayRef {
    let values: Arc<dyn Array> = Arc::new(StringArray::from(names.0.clone()));
    Arc::new(
        DictionaryArray::<Int32Type>::try_new(keys, values)
            .expect("indices come from `Names::add`"),
    )
}

/// The description of a table.
pub(crate) struct AboutTable {
    /// When a row is written.
    pub(crate) text: &'static str,
    pub(crate) columns: &'static [AboutColumn],
}

/// The declaration of a table's column.
#[derive(Debug)]
pub struct AboutColumn {
    /// The column's name, with its unit at the end.
    pub name: &'static str,
    /// What the column holds; if it may be null, the text ends with "Null: …".
    pub(crate) text: &'static str,
    /// Type of the values: a Rust type, `text`, or `name` for text with a dictionary.
    pub kind: &'static str,
    /// Whether it may be null.
    pub nullable: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::PrimitiveArray;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nulls_that_are_only_counted_are_there_in_the_end(
            stretches in proptest::collection::vec((any::<bool>(), 0usize..100), 0..8),
        ) {
            let stretch = |(index, &(is_null, count)): (usize, &(bool, usize))| {
                std::iter::repeat_n((!is_null).then_some(index as u32), count)
            };
            let values: Vec<Option<u32>> =
                stretches.iter().enumerate().flat_map(stretch).collect();
            let mut column = Nullable::<UInt32Type>::default();
            let mut at_once = Nullable::<UInt32Type>::default();
            values.iter().for_each(|&value| column.append(value));
            Column::append_all(&values, |&value| value, &mut at_once);
            let whole = PrimitiveArray::<UInt32Type>::from(values);
            prop_assert_eq!(&column.finish(), &whole);
            prop_assert_eq!(&at_once.finish(), &whole);
            // A builder starts over.
            prop_assert_eq!(column.finish().len(), 0);
        }
    }
}
