//! The RRC configuration of DRX (TS 38.331 DRX-Config, TS 36.331 DRX-Config).

use airpath_base::Duration;

/// DRX of one UE. LTE counts in subframes, NR in milliseconds and 1/32 ms; both are times here.
///
/// Not modelled: secondary DRX group, wake-up signal (DCP), NTN, sidelink, non-integer cycles. An
/// LTE TDD cell counts its timers in PDCCH subframes: convert them for the subframe pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DrxConfig {
    /// drx-onDurationTimer; onDurationTimer in LTE.
    pub on_duration: Duration,
    /// drx-SlotOffset, below 1 ms; zero in LTE.
    pub slot_offset: Duration,
    /// drx-InactivityTimer.
    pub inactivity: Duration,
    /// The cycle in drx-LongCycleStartOffset, up to 10.24 s.
    pub long_cycle: Duration,
    /// drx-StartOffset, in whole subframes, below the long cycle.
    pub start_offset: Duration,
    /// drx-ShortCycle with drx-ShortCycleTimer, if configured.
    pub short_cycle: Option<ShortCycle>,
    /// drx-HARQ-RTT-TimerDL. LTE: the HARQ RTT Timer, 8 subframes for FDD.
    pub harq_rtt_downlink: Duration,
    /// drx-HARQ-RTT-TimerUL. LTE FDD: 3 subframes, from the end of the PUSCH to the subframe in
    /// which a retransmission can be granted.
    pub harq_rtt_uplink: Duration,
    /// drx-RetransmissionTimerDL.
    pub retransmission_downlink: Duration,
    /// drx-RetransmissionTimerUL. LTE: 1 subframe, because the uplink HARQ is synchronous.
    pub retransmission_uplink: Duration,
    /// Time from the beginning of a PDCCH occasion to the first symbol after it, when timers start:
    /// 1 to 3 symbols in NR, 1 subframe in LTE.
    pub pdcch: Duration,
    /// HARQ processes in each direction.
    pub harq_processes: u8,
    /// When uplink may begin.
    pub uplink_start: UplinkStart,
}

/// The short DRX cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortCycle {
    /// drx-ShortCycle; it must divide the long cycle.
    pub cycle: Duration,
    /// drx-ShortCycleTimer, in short cycles (1 to 16).
    pub timer: u32,
}

/// When the MAC of a sleeping UE sees new uplink data, and may request or use a grant.
///
/// Only the first is 3GPP's. The others exist so that a report of a measurement which claims that
/// uplink data waits for the UE to wake up can be compared with the specification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UplinkStart {
    /// At once: a scheduling request may be sent at any time, and while it is pending the UE is in
    /// Active Time (TS 38.321 5.4.4, 5.7).
    #[default]
    AtOnce,
    /// **Not 3GPP.** When the UE is in Active Time for another reason.
    InActiveTime,
    /// **Not 3GPP.** While drx-onDurationTimer runs, even if the inactivity timer keeps the UE
    /// awake. This is the switch `uplink_waits_for_on_duration`.
    InOnDuration,
}
