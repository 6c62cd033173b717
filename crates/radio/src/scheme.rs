//! Modulation and code rate: the meaning of MCS and CQI indices, in LTE and NR alike.

/// A modulation with a target code rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scheme {
    /// The modulation, which gives the bits per resource element.
    pub modulation: Modulation,
    /// The fraction of these bits that is information.
    pub rate: CodeRate,
}

/// A modulation of TS 38.211 5.1 (TS 36.211 7.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Modulation {
    /// pi/2-BPSK, 1 bit per resource element (uplink with transform precoding only).
    Pi2Bpsk,
    /// QPSK, 2 bits.
    Qpsk,
    /// 16QAM, 4 bits.
    Qam16,
    /// 64QAM, 6 bits.
    Qam64,
    /// 256QAM, 8 bits.
    Qam256,
    /// 1024QAM, 10 bits.
    Qam1024,
}

/// A code rate in steps of 1/2048: the tables give R x 1024, some with a half.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CodeRate(u16);

impl Scheme {
    /// Information bits per resource element and layer, times 2048.
    pub const fn efficiency_2048ths(self) -> u32 {
        self.modulation.order() * self.rate.per_2048()
    }

    /// Information bits per resource element and layer, for people and plots.
    pub fn efficiency(self) -> f64 {
        f64::from(self.efficiency_2048ths()) / 2048.0
    }
}

impl Modulation {
    /// Q_m: bits per resource element.
    pub const fn order(self) -> u32 {
        match self {
            Self::Pi2Bpsk => 1,
            Self::Qpsk => 2,
            Self::Qam16 => 4,
            Self::Qam64 => 6,
            Self::Qam256 => 8,
            Self::Qam1024 => 10,
        }
    }
}

impl CodeRate {
    /// The code rate R, given as R x 2048.
    pub const fn from_2048ths(rate: u16) -> Self {
        Self(rate)
    }

    /// The code rate R, given as R x 1024, as most tables print it.
    pub const fn from_1024ths(rate: u16) -> Self {
        Self(2 * rate)
    }

    /// R x 2048.
    pub const fn per_2048(self) -> u32 {
        self.0 as u32
    }

    /// R, for people and plots.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 2048.0
    }
}

/// Builds a table from runs of one modulation with R x 1024 as printed. It is evaluated by the
/// compiler (floats are used only because of the printed halves); the runs must fill the table.
pub(super) const fn table<const N: usize>(runs: &[(Modulation, &[f32])]) -> [Scheme; N] {
    let mut schemes = [Scheme { modulation: Modulation::Qpsk, rate: CodeRate(0) }; N];
    let (mut filled, mut run) = (0, 0);
    while run < runs.len() {
        let (modulation, rates) = runs[run];
        let mut index = 0;
        while index < rates.len() {
            let rate = CodeRate((rates[index] * 2.0) as u16);
            schemes[filled] = Scheme { modulation, rate };
            filled += 1;
            index += 1;
        }
        run += 1;
    }
    assert!(filled == N, "the runs do not fill the table");
    schemes
}
