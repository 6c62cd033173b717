//! Columns of numbers as little-endian bytes: a fifth of the size of the same numbers as text or as
//! objects.

use serde::{Serialize, Serializer};

/// 64-bit numbers. Whole numbers are exact below 2^53, in nanoseconds a hundred days.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = bytes))]
pub struct Column(pub Vec<f64>);

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = self.0.iter().flat_map(|value| value.to_le_bytes()).collect();
        serializer.serialize_bytes(&bytes)
    }
}

/// 32-bit numbers.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = bytes))]
pub struct Rough(pub Vec<f32>);

impl Serialize for Rough {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = self.0.iter().flat_map(|value| value.to_le_bytes()).collect();
        serializer.serialize_bytes(&bytes)
    }
}

/// Serialises a list as a [`Column`]; no value may be NaN.
pub(crate) fn column<S: Serializer, T: Number>(
    list: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let bytes: Vec<u8> = list.iter().flat_map(|&value| value.number().to_le_bytes()).collect();
    serializer.serialize_bytes(&bytes)
}

/// A number that can stand in a column.
pub(crate) trait Number: Copy {
    /// The value as a 64-bit number.
    fn number(self) -> f64;
}

macro_rules! numbers {
    ($($kind:ty)+) => {$(
        impl Number for $kind {
            fn number(self) -> f64 {
                self as f64
            }
        }
        impl Number for Option<$kind> {
            fn number(self) -> f64 {
                self.map_or(f64::NAN, |value| value as f64)
            }
        }
    )+};
}

numbers!(u64 u32 u16);

impl Number for bool {
    fn number(self) -> f64 {
        f64::from(u8::from(self))
    }
}

/// Turns the schema of a list into that of a column.
#[cfg(feature = "schema")]
fn bytes(schema: &mut schemars::Schema) {
    schema.remove("items");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("contentEncoding".to_owned(), "binary".into());
}

/// Turns the schema of each list in a document into that of a column, except lists of a fixed
/// length.
#[cfg(feature = "schema")]
pub(crate) fn columns(schema: &mut schemars::Schema) {
    let properties = schema.get_mut("properties").and_then(|all| all.as_object_mut());
    for property in properties.into_iter().flat_map(|all| all.values_mut()) {
        if property.get("items").is_some() && property.get("minItems").is_none() {
            let _ = <&mut schemars::Schema>::try_from(property).map(bytes);
        }
    }
}
