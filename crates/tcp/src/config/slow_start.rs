//! Slow start, and what ends it before a loss does.

/// Slow start (RFC 5681 3.1) and its variants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SlowStartConfig {
    /// Most segments by which one acknowledgement grows cwnd (RFC 5681 3.1: 1; RFC 3465's L);
    /// `None`: by all that it acknowledges, as Linux does. HyStart++ has its own.
    pub limit: Option<u32>,
    /// What ends it before a loss does.
    pub exit: EarlyExit,
}

/// What ends slow start before a loss does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyExit {
    /// Nothing.
    #[default]
    None,
    /// HyStart, one of Linux's.
    Hystart(HystartConfig),
    /// HyStart++ (RFC 9406).
    HystartPlusPlus,
}

/// A generation of HyStart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HystartConfig {
    /// Resolution of time.
    pub clock: HystartClock,
    /// The test of the train of acknowledgements.
    pub ack_train: AckTrain,
    /// The test of the delay.
    pub delay: bool,
    /// True: the first eight samples of a round make its RTT, so that slow start ends when the
    /// minimum RTT falls later in the round. False: every sample may lower it.
    pub falling_minimum_exits: bool,
    /// Where a round begins.
    pub round_start: RoundStart,
}

/// Resolution of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HystartClock {
    /// 1 ms; RTT samples in eighths of it.
    Millisecond,
    /// 1 µs.
    Microsecond,
}

/// How long a train of acknowledgements may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckTrain {
    /// No test.
    Off,
    /// Half of the minimum RTT.
    Half,
    /// The minimum RTT and a cushion for segmentation offload; half of it if the sender does not
    /// pace.
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
    /// Until Linux 5.5; 4.19 until 4.19.130, 5.4 until 5.4.49.
    pub const LINUX_4_19: Self = Self {
        clock: HystartClock::Millisecond,
        ack_train: AckTrain::Half,
        delay: true,
        falling_minimum_exits: true,
        round_start: RoundStart::Late,
    };
    /// From Linux 5.6: microseconds, and an ACK train that knows pacing.
    pub const LINUX_5_6: Self = Self {
        clock: HystartClock::Microsecond,
        ack_train: AckTrain::Cushioned,
        ..Self::LINUX_4_19
    };
    /// From Linux 5.8: a falling minimum does not end slow start.
    pub const LINUX_5_8: Self = Self { falling_minimum_exits: false, ..Self::LINUX_5_6 };
    /// From Linux 5.16: rounds go on where cwnd is not the limit.
    pub const LINUX_5_16: Self = Self { round_start: RoundStart::FromLowWindow, ..Self::LINUX_5_8 };
    /// From Linux 6.14: rounds of a small cwnd count too.
    pub const LINUX_6_14: Self = Self { round_start: RoundStart::Prompt, ..Self::LINUX_5_16 };
}
