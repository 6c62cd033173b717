//! The values of a column while it grows.

use arrow::array::{ArrowPrimitiveType, NullBufferBuilder, PrimitiveArray};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::ToByteSlice;

use crate::large_pages::LargePages;

/// Values of a column that begins with few and may come to have millions.
///
/// Fresh memory costs time: each new page is a fault, and for a table with a row for each acknowledgement
/// these faults are half of what a row costs. A column of which many are [expected](Self::expect_many) goes
/// on in large pages when it has [`FEW`] values.
#[derive(Debug)]
pub(crate) struct Values<T: ArrowPrimitiveType> {
    few: Vec<T::Native>,
    many: Option<LargePages>,
    expects_many: bool,
}

/// Until then a column is in ordinary memory: a small run has no large page. A larger one has at most one
/// more for each column than it fills.
const FEW: usize = 1 << 15;

impl<T: ArrowPrimitiveType> Default for Values<T> {
    fn default() -> Self {
        Self { few: Vec::new(), many: None, expects_many: false }
    }
}

impl<T: ArrowPrimitiveType> Values<T> {
    pub(crate) fn expect_many(&mut self) {
        self.expects_many = true;
    }

    pub(crate) fn len(&self) -> usize {
        match &self.many {
            None => self.few.len(),
            Some(pages) => pages.len() / size_of::<T::Native>(),
        }
    }

    #[inline]
    pub(crate) fn append(&mut self, value: T::Native) {
        match self.many {
            None => self.few.push(value),
            Some(_) => self.append_slice(&[value]),
        }
    }

    /// No value: what is there in its place does not matter.
    pub(crate) fn append_defaults(&mut self, count: usize) {
        match self.many {
            None => self.few.resize(self.few.len() + count, T::Native::default()),
            Some(_) => (0..count).for_each(|_| self.append_slice(&[T::Native::default()])),
        }
    }

    #[inline]
    pub(crate) fn append_slice(&mut self, values: &[T::Native]) {
        if let Some(pages) = &mut self.many {
            if pages.append(values.to_byte_slice()) {
                return;
            }
            self.leave_large_pages();
        }
        self.few.extend_from_slice(values);
        if self.expects_many && self.few.len() >= FEW {
            self.enter_large_pages();
        }
    }

    #[cold]
    fn enter_large_pages(&mut self) {
        self.many = LargePages::with(self.few.to_byte_slice());
        // Where there are none it is not tried again.
        self.expects_many = false;
        if self.many.is_some() {
            self.few = Vec::new();
        }
    }

    /// There is no room for more.
    #[cold]
    fn leave_large_pages(&mut self) {
        self.few = self.take_many().map_or_else(Vec::new, |values| values.to_vec());
    }

    fn take_many(&mut self) -> Option<ScalarBuffer<T::Native>> {
        let length = self.len();
        Some(ScalarBuffer::new(self.many.take()?.into_buffer(), 0, length))
    }

    /// All of them; none is left.
    pub(crate) fn finish(&mut self) -> ScalarBuffer<T::Native> {
        self.take_many().unwrap_or_else(|| std::mem::take(&mut self.few).into())
    }

    /// All of them as an array; none is left.
    pub(crate) fn finish_array(&mut self, nulls: Option<NullBuffer>) -> PrimitiveArray<T> {
        PrimitiveArray::new(self.finish(), nulls)
    }
}

/// Values and nulls. The nulls behind the last value are only counted, and take memory when the column
/// is finished: most columns that may be null are so to their end, and fresh memory costs time.
#[derive(Debug)]
pub(crate) struct Nullable<T: ArrowPrimitiveType> {
    values: Values<T>,
    /// As long as the values.
    present: NullBufferBuilder,
    /// Behind those.
    nulls: usize,
}

impl<T: ArrowPrimitiveType> Default for Nullable<T> {
    fn default() -> Self {
        Self { values: Values::default(), present: NullBufferBuilder::new(0), nulls: 0 }
    }
}

impl<T: ArrowPrimitiveType> Nullable<T> {
    pub(crate) fn expect_many(&mut self) {
        self.values.expect_many();
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
            // The system hands zeros out without writing them.
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
        ) {
            let (mut many, mut few) = (Values::<Float64Type>::default(), Vec::new());
            many.expect_many();
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
        }

        #[test]
        fn so_are_nulls(
            stretches in proptest::collection::vec((any::<bool>(), 0usize..30_000), 0..6),
        ) {
            let mut many = Nullable::<UInt32Type>::default();
            many.expect_many();
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

    #[test]
    fn what_finds_no_room_in_large_pages_goes_on_without() {
        let mut values = Values::<UInt32Type>::default();
        values.expect_many();
        let first: Vec<u32> = (0..FEW as u32).collect();
        values.append_slice(&first);
        let more: Vec<u32> = (FEW as u32..20_000_000).collect();
        values.append_slice(&more);
        assert!(values.many.is_none());
        assert!(values.finish().iter().copied().eq(0..20_000_000));
    }
}
