//! Infallible access to the settings of checked tables.

use airpath_base::{Duration, Rate};

use crate::read::Fields;
use crate::spec::Chosen;

/// Access to the settings of a complete table.
pub(crate) struct Get<'a>(pub(crate) &'a Fields);

const COMPLETE: &str = "a complete table has its required keys and defaults";

impl Get<'_> {
    /// The selector's value.
    pub(crate) fn variant(&self) -> &'static str {
        self.0.variant.expect("a table without its selector is a problem")
    }

    /// The value of a key that has an enumeration of its own.
    pub(crate) fn chosen<T: Chosen>(&self) -> T {
        self.0.chosen().expect(COMPLETE)
    }

    /// The value of a key whose enumeration is shared by several keys.
    pub(crate) fn choice_of<T: Chosen>(&self, name: &str) -> T {
        self.0.choice_of(name).expect(COMPLETE)
    }

    /// A setting that is text.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.text(name).expect(COMPLETE)
    }

    /// A setting that is a flag.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.flag(name).expect(COMPLETE)
    }

    /// A setting that is a whole number.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.0.count(name).expect(COMPLETE)
    }

    /// A setting that is a whole number below 2^32.
    pub(crate) fn narrow(&self, name: &str) -> u32 {
        narrow(self.count(name))
    }

    /// A setting that is a probability.
    pub(crate) fn fraction(&self, name: &str) -> f64 {
        self.0.fraction(name).expect(COMPLETE)
    }

    /// A setting that is a number with a fraction.
    pub(crate) fn real(&self, name: &str) -> f64 {
        self.0.real(name).expect(COMPLETE)
    }

    /// A setting that is a length of time.
    pub(crate) fn time(&self, name: &str) -> Duration {
        self.0.time(name).expect(COMPLETE)
    }

    /// A setting that is a bit rate.
    pub(crate) fn rate(&self, name: &str) -> Rate {
        self.0.rate(name).expect(COMPLETE)
    }
}

/// A count as u32, for keys whose range ends below 2^32.
pub(crate) fn narrow(count: u64) -> u32 {
    u32::try_from(count).expect("the key's range ends below 2^32")
}
