//! Slow start, and what ends it before a loss.

/// Slow start (RFC 5681 3.1) and its variants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlowStartConfig {
    /// Most segments by which one acknowledgement grows cwnd (RFC 5681 3.1: 1; RFC 3465's L);
    /// `None`: as many as it acknowledges, as in Linux. HyStart++ has its own limit.
    pub limit: Option<u32>,
    /// What ends slow start before a loss.
    pub exit: EarlyExit,
}

/// What ends slow start before a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyExit {
    /// Slow start continues until a loss.
    #[default]
    None,
    /// HyStart as one of Linux's generations has it.
    Hystart(HystartConfig),
    /// HyStart++ (RFC 9406).
    HystartPlusPlus,
}

/// A generation of HyStart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HystartConfig {
    /// Resolution of time.
    pub clock: HystartClock,
    /// The ACK train test.
    pub ack_train: AckTrain,
    /// Whether the delay test is made.
    pub delay: bool,
    /// True: the first eight samples of a round determine its RTT, so slow start ends if the
    /// minimum RTT falls later in the round. False: every sample may lower the round's RTT.
    pub falling_minimum_exits: bool,
    /// Where a round begins.
    pub round_start: RoundStart,
}

/// Resolution of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HystartClock {
    /// 1 ms; RTT samples in eighths of a millisecond.
    Millisecond,
    /// 1 µs.
    Microsecond,
}

/// The longest ACK train that does not end slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckTrain {
    /// The test is not made.
    Off,
    /// Half of the minimum RTT.
    Half,
    /// The minimum RTT plus a cushion for segmentation offload; if the sender does not pace, half
    /// of that.
    Cushioned,
}

/// Where a round begins: at the first acknowledgement beyond what had been sent when the one before
/// it began, and
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoundStart {
    /// after that acknowledgement's sample has gone to the old round, and only if cwnd may grow.
    Late,
    /// before its sample, and only once cwnd has the size from which the tests are made: the first
    /// round begins amid a flight.
    FromLowWindow,
    /// before its sample.
    Prompt,
}

impl HystartConfig {
    /// Linux up to 5.5; 4.19 up to 4.19.130, 5.4 up to 5.4.49.
    pub const LINUX_4_19: Self = Self {
        clock: HystartClock::Millisecond,
        ack_train: AckTrain::Half,
        delay: true,
        falling_minimum_exits: true,
        round_start: RoundStart::Late,
    };
    /// Linux since 5.6: microseconds, and an ACK train test that accounts for pacing.
    pub const LINUX_5_6: Self = Self {
        clock: HystartClock::Microsecond,
        ack_train: AckTrain::Cushioned,
        ..Self::LINUX_4_19
    };
    /// Linux since 5.8: a falling minimum does not end slow start.
    pub const LINUX_5_8: Self = Self { falling_minimum_exits: false, ..Self::LINUX_5_6 };
    /// Linux since 5.16: rounds continue while cwnd is not the limit.
    pub const LINUX_5_16: Self = Self { round_start: RoundStart::FromLowWindow, ..Self::LINUX_5_8 };
    /// Linux since 6.14: rounds with a small cwnd count too.
    pub const LINUX_6_14: Self = Self { round_start: RoundStart::Prompt, ..Self::LINUX_5_16 };
}
