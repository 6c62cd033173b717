//! The values of a column while it grows.

use arrow::array::{ArrowPrimitiveType, NullBufferBuilder, PrimitiveArray};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::ToByteSlice;

use crate::large_pages::{LargePages, Piece};

/// Values of a column, in ordinary memory or in a piece of large pages.
///
/// Fresh memory costs time: each new page causes a fault, and for a table with a row per
/// acknowledgement these faults are half of the cost of a row.
#[derive(Debug)]
pub(crate) struct Values<T: ArrowPrimitiveType> {
    few: Vec<T::Native>,
    many: Option<Piece>,
}

impl<T: ArrowPrimitiveType> Default for Values<T> {
    fn default() -> Self {
        Self { few: Vec::new(), many: None }
    }
}

impl<T: ArrowPrimitiveType> Values<T> {
    /// Reserves room for this many values in large pages, if the system has them; call before
    /// anything is appended.
    pub(crate) fn lie_in(&mut self, pages: &LargePages, values: usize) {
        debug_assert!(self.few.is_empty(), "it has values elsewhere");
        self.many = pages.piece(values * size_of::<T::Native>());
    }

    pub(crate) fn len(&self) -> usize {
        match &self.many {
            None => self.few.len(),
            Some(piece) => piece.len() / size_of::<T::Native>(),
        }
    }

    #[inline]
    pub(crate) fn append(&mut self, value: T::Native) {
        match self.many {
            None => self.few.push(value),
            Some(_) => self.append_slice(&[value]),
        }
    }

    /// Appends nulls: the values in their places do not matter.
    pub(crate) fn append_defaults(&mut self, count: usize) {
        match self.many {
            None => self.few.resize(self.few.len() + count, T::Native::default()),
            Some(_) => (0..count).for_each(|_| self.append_slice(&[T::Native::default()])),
        }
    }

    #[inline]
    pub(crate) fn append_slice(&mut self, values: &[T::Native]) {
        if let Some(piece) = &mut self.many {
            if piece.append(values.to_byte_slice()) {
                return;
            }
            self.leave_large_pages();
        }
        self.few.extend_from_slice(values);
    }

    /// Moves the values to ordinary memory, because there is no room for more.
    #[cold]
    fn leave_large_pages(&mut self) {
        self.few = self.take_many().map_or_else(Vec::new, |values| values.to_vec());
    }

    fn take_many(&mut self) -> Option<ScalarBuffer<T::Native>> {
        let length = self.len();
        Some(ScalarBuffer::new(self.many.take()?.into_buffer(), 0, length))
    }

    /// Takes all values; none is left.
    pub(crate) fn finish(&mut self) -> ScalarBuffer<T::Native> {
        self.take_many().unwrap_or_else(|| std::mem::take(&mut self.few).into())
    }

    /// Takes all values as an array; none is left.
    pub(crate) fn finish_array(&mut self, nulls: Option<NullBuffer>) -> PrimitiveArray<T> {
        PrimitiveArray::new(self.finish(), nulls)
    }
}

/// Values and nulls. Trailing nulls are only counted, and take memory when the column is finished:
/// most nullable columns are null to their end, and fresh memory costs time.
#[derive(Debug)]
pub(crate) struct Nullable<T: ArrowPrimitiveType> {
    values: Values<T>,
    /// Which values are present; as long as the values.
    present: NullBufferBuilder,
    /// Nulls after them.
    nulls: usize,
}

impl<T: ArrowPrimitiveType> Default for Nullable<T> {
    fn default() -> Self {
        Self { values: Values::default(), present: NullBufferBuilder::new(0), nulls: 0 }
    }
}

impl<T: ArrowPrimitiveType> Nullable<T> {
    /// Like [`Values::lie_in`].
    pub(crate) fn lie_in(&mut self, pages: &LargePages, values: usize) {
        self.values.lie_in(pages, values);
    }

    pub(crate) fn append(&mut self, value: Option<T::Native>) {
        match value {
            Some(value) => self.append_slice(&[value]),
            None => self.nulls += 1,
        }
    }

    pub(crate) fn append_nulls(&mut self, count: usize) {
        self.nulls += count;
    }

    pub(crate) fn append_slice(&mut self, values: &[T::Native]) {
        if self.nulls > 0 {
            let nulls = std::mem::take(&mut self.nulls);
            self.values.append_defaults(nulls);
            self.present.append_n_nulls(nulls);
        }
        self.values.append_slice(values);
        self.present.append_n_non_nulls(values.len());
    }

    pub(crate) fn finish(&mut self) -> PrimitiveArray<T> {
        let nulls = std::mem::take(&mut self.nulls);
        if nulls > 0 {
            // The system provides zeroed memory without writing it.
            let mut values = vec![T::Native::default(); self.values.len() + nulls];
            let first = self.values.finish();
            values[..first.len()].copy_from_slice(&first);
            self.values = Values { few: values, ..Values::default() };
            self.present.append_n_nulls(nulls);
        }
        let present = std::mem::replace(&mut self.present, NullBufferBuilder::new(0)).build();
        self.values.finish_array(present)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Float64Type, UInt32Type};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn values_are_the_same_in_large_pages(
            pieces in proptest::collection::vec((0usize..5_000, any::<bool>()), 0..40),
            // There may be less room than values.
            room in 0usize..150_000,
        ) {
            let pages = LargePages::default();
            let (mut many, mut other) = (Values::<Float64Type>::default(), Values::default());
            many.lie_in(&pages, room);
            other.lie_in(&pages, 10);
            other.append_slice(&[1_u32, 2, 3]);
            let mut few = Vec::new();
            for (length, singly) in pieces {
                let values: Vec<f64> = (0..length).map(|place| (few.len() + place) as f64).collect();
                match singly {
                    true => values.iter().for_each(|&value| many.append(value)),
                    false => many.append_slice(&values),
                }
                few.extend(values);
                prop_assert_eq!(many.len(), few.len());
            }
            prop_assert_eq!(&*many.finish(), &*few);
            prop_assert_eq!(many.len(), 0);
            let neighbour: PrimitiveArray<UInt32Type> = other.finish_array(None);
            prop_assert_eq!(&neighbour.values()[..], &[1, 2, 3]);
        }

        #[test]
        fn so_are_nulls(
            stretches in proptest::collection::vec((any::<bool>(), 0usize..30_000), 0..6),
        ) {
            let mut many = Nullable::<UInt32Type>::default();
            many.lie_in(&LargePages::default(), 200_000);
            let mut whole = Vec::new();
            for (index, (is_null, length)) in (0..).zip(stretches) {
                match is_null {
                    true => many.append_nulls(length),
                    false => many.append_slice(&vec![index; length]),
                }
                whole.extend(std::iter::repeat_n((!is_null).then_some(index), length));
            }
            prop_assert_eq!(many.finish(), PrimitiveArray::<UInt32Type>::from(whole));
        }
    }
}
