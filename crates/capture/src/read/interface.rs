//! Interfaces, and the units of their timestamps.

/// An interface at which packets were captured.
#[derive(Clone, Default, Debug)]
pub struct Interface {
    /// The interface's name in the file.
    pub name: Option<String>,
    /// LINKTYPE_ number of the interface's packets.
    pub link_type: u16,
    /// How many of its packets the file holds.
    pub packets: u64,
    /// Packets that the capture dropped, according to the file.
    pub dropped: u64,
    pub(super) clock: Clock,
}

/// Unit and offset of an interface's timestamps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Units in a second.
    units: Units,
    /// Offset of the timestamps, in nanoseconds.
    pub(super) offset: i128,
}

#[derive(Clone, Copy, Debug)]
enum Units {
    /// One unit is this many nanoseconds.
    Nanoseconds(u64),
    /// One second is this many units.
    PerSecond(u128),
}

impl Default for Clock {
    fn default() -> Self {
        Self { units: Units::Nanoseconds(1000), offset: 0 }
    }
}

impl Clock {
    /// Sets the unit from if_tsresol: a negative power of 10, or of 2 if the highest bit is set.
    pub(super) fn set_resolution(&mut self, resolution: u8) {
        let power = u32::from(resolution & 0x7f);
        self.units = match resolution & 0x80 {
            0 if power <= 9 => Units::Nanoseconds(10_u64.pow(9 - power)),
            // A unit below 10^-19 s or 2^-64 s: 64 bits of such units are less than a second.
            0 => Units::PerSecond(10_u128.pow(power.min(38))),
            _ => Units::PerSecond(1 << power.min(127)),
        };
    }

    /// Converts a timestamp to nanoseconds since 1970.
    #[inline]
    pub(super) fn nanos(&self, high: u32, low: u32) -> u64 {
        let stamp = u64::from(high) << 32 | u64::from(low);
        let nanos = match self.units {
            Units::Nanoseconds(unit) if self.offset == 0 => return stamp.saturating_mul(unit),
            Units::Nanoseconds(unit) => u128::from(stamp) * u128::from(unit),
            Units::PerSecond(units) => u128::from(stamp) * 1_000_000_000 / units,
        };
        (nanos as i128 + self.offset).clamp(0, i128::from(u64::MAX)) as u64
    }
}
