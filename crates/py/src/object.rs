//! Documents as Python objects: dicts, lists, strings and numbers. Their types are in `_core.pyi`.

use std::fmt::{self, Display};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde::ser::{self, Impossible, Serialize, Serializer};

/// The document as an object. A number that is NaN or infinite becomes None.
pub(crate) fn object<'py>(
    py: Python<'py>,
    document: &impl Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(document.serialize(Objects(py))?)
}

/// Serialises a document to Python objects.
#[derive(Clone, Copy)]
struct Objects<'py>(Python<'py>);

/// What a document must not contain, or what Python raised.
#[derive(Debug)]
struct Failed(PyErr);

/// A list under construction.
struct Items<'py> {
    py: Python<'py>,
    list: Bound<'py, PyList>,
}

/// A dict under construction.
struct Entries<'py> {
    py: Python<'py>,
    dict: Bound<'py, PyDict>,
    /// The key for the next value.
    key: Option<Bound<'py, PyAny>>,
    /// The variant of an enumeration to which these fields belong.
    variant: Option<&'static str>,
}

impl Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl std::error::Error for Failed {}

impl From<PyErr> for Failed {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<Failed> for PyErr {
    fn from(Failed(error): Failed) -> Self {
        error
    }
}

impl ser::Error for Failed {
    fn custom<T: Display>(said: T) -> Self {
        Self(pyo3::exceptions::PyTypeError::new_err(said.to_string()))
    }
}

impl<'py> Objects<'py> {
    fn none(self) -> Bound<'py, PyAny> {
        self.0.None().into_bound(self.0)
    }

    fn made<T: IntoPyObject<'py>>(self, value: T) -> Result<Bound<'py, PyAny>, Failed> {
        value.into_bound_py_any(self.0).map_err(Failed)
    }

    fn entries(self, variant: Option<&'static str>) -> Entries<'py> {
        Entries { py: self.0, dict: PyDict::new(self.0), key: None, variant }
    }
}

macro_rules! made {
    ($($method:ident: $kind:ty,)+) => {$(
        fn $method(self, value: $kind) -> Result<Self::Ok, Failed> {
            self.made(value)
        }
    )+};
}

impl<'py> Serializer for Objects<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failed;
    type SerializeSeq = Items<'py>;
    type SerializeTuple = Items<'py>;
    type SerializeTupleStruct = Items<'py>;
    type SerializeTupleVariant = Impossible<Self::Ok, Failed>;
    type SerializeMap = Entries<'py>;
    type SerializeStruct = Entries<'py>;
    type SerializeStructVariant = Entries<'py>;

    made! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_char: char,
        serialize_str: &str,
        serialize_bytes: &[u8],
    }

    fn serialize_f32(self, value: f32) -> Result<Self::Ok, Failed> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<Self::Ok, Failed> {
        if value.is_finite() { self.made(value) } else { Ok(self.none()) }
    }

    fn serialize_none(self) -> Result<Self::Ok, Failed> {
        Ok(self.none())
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<Self::Ok, Failed> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Self::Ok, Failed> {
        Ok(self.none())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<Self::Ok, Failed> {
        Ok(self.none())
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<Self::Ok, Failed> {
        self.made(variant)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<Self::Ok, Failed> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Self::Ok, Failed> {
        let mut entries = self.entries(None);
        entries.insert(variant, value)?;
        Ok(entries.dict.into_any())
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Items<'py>, Failed> {
        Ok(Items { py: self.0, list: PyList::empty(self.0) })
    }

    fn serialize_tuple(self, length: usize) -> Result<Items<'py>, Failed> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_struct(
        self,
        _name: &'static str,
        length: usize,
    ) -> Result<Items<'py>, Failed> {
        self.serialize_seq(Some(length))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeTupleVariant, Failed> {
        Err(ser::Error::custom(format!("{name}::{variant} has no names for its values")))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Entries<'py>, Failed> {
        Ok(self.entries(None))
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Entries<'py>, Failed> {
        Ok(self.entries(None))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Entries<'py>, Failed> {
        Ok(self.entries(Some(variant)))
    }
}

impl<'py> Items<'py> {
    fn push<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Failed> {
        let value = value.serialize(Objects(self.py))?;
        Ok(self.list.append(value)?)
    }
}

impl<'py> Entries<'py> {
    fn insert<T: ?Sized + Serialize>(&mut self, key: &str, value: &T) -> Result<(), Failed> {
        let value = value.serialize(Objects(self.py))?;
        Ok(self.dict.set_item(PyString::intern(self.py, key), value)?)
    }

    fn finish(self) -> Result<Bound<'py, PyAny>, Failed> {
        let Some(variant) = self.variant else { return Ok(self.dict.into_any()) };
        let whole = PyDict::new(self.py);
        whole.set_item(variant, self.dict)?;
        Ok(whole.into_any())
    }
}

macro_rules! lists {
    ($($kind:ident: $method:ident,)+) => {$(
        impl<'py> ser::$kind for Items<'py> {
            type Ok = Bound<'py, PyAny>;
            type Error = Failed;

            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Failed> {
                self.push(value)
            }

            fn end(self) -> Result<Self::Ok, Failed> {
                Ok(self.list.into_any())
            }
        }
    )+};
}

lists! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
}

macro_rules! structs {
    ($($kind:ident,)+) => {$(
        impl<'py> ser::$kind for Entries<'py> {
            type Ok = Bound<'py, PyAny>;
            type Error = Failed;

            fn serialize_field<T: ?Sized + Serialize>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Failed> {
                self.insert(key, value)
            }

            fn end(self) -> Result<Self::Ok, Failed> {
                self.finish()
            }
        }
    )+};
}

structs! {
    SerializeStruct,
    SerializeStructVariant,
}

impl<'py> ser::SerializeMap for Entries<'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failed;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Failed> {
        self.key = Some(key.serialize(Objects(self.py))?);
        Ok(())
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Failed> {
        let Some(key) = self.key.take() else {
            return Err(ser::Error::custom("a value came without its key"));
        };
        let value = value.serialize(Objects(self.py))?;
        Ok(self.dict.set_item(key, value)?)
    }

    fn end(self) -> Result<Self::Ok, Failed> {
        Ok(self.dict.into_any())
    }
}
