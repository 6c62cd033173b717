//! Discontinuous reception: when the UE monitors the PDCCH (TS 38.321 5.7, TS 36.321 5.7).

mod config;
mod message;
mod on_duration;
#[cfg(test)]
mod tests;
mod windows;

use airpath_base::{Direction, Duration, Instant};

use super::earliest;
pub use config::{DrxConfig, ShortCycle, UplinkStart};
pub use message::{DrxCommand, DrxState, Transmission, TransmissionKind};
use on_duration::{Cycle, OnDuration};
use windows::{BothWindows, Window, Windows};

/// DRX of one UE in RRC_CONNECTED.
///
/// Times passed to it never decrease. It is evaluated lazily: each call first processes what
/// happened since the last one, at a cost that depends on the traffic in between, not on the time.
/// Nothing depends on how often it is called.
///
/// HARQ feedback and scheduling requests are sent whether or not the UE is in Active Time.
///
/// ```
/// use airpath_base::{Duration, Instant};
/// use airpath_radio::mac::drx::{Drx, DrxConfig, UplinkStart};
///
/// let ms = Duration::from_millis;
/// let mut drx = Drx::new(&DrxConfig {
///     on_duration: ms(10),
///     slot_offset: Duration::ZERO,
///     inactivity: ms(20),
///     long_cycle: ms(320),
///     start_offset: ms(0),
///     short_cycle: None,
///     harq_rtt_downlink: ms(4),
///     harq_rtt_uplink: ms(4),
///     retransmission_downlink: ms(8),
///     retransmission_uplink: ms(8),
///     pdcch: Duration::from_micros(71),
///     harq_processes: 16,
///     uplink_start: UplinkStart::AtOnce,
/// });
/// let asleep = Instant::ZERO + ms(100);
/// assert!(!drx.is_active(asleep));
/// assert_eq!(drx.next_active(asleep), Instant::ZERO + ms(320));
/// drx.on_scheduling_request(asleep, true);
/// assert!(drx.is_active(asleep));
/// ```
#[derive(Clone, Debug)]
pub struct Drx {
    config: DrxConfig,
    on_duration: OnDuration,
    /// drx-InactivityTimer runs until this time.
    inactivity: Option<Instant>,
    /// drx-ShortCycleTimer runs until this time; the short cycle is in use.
    short_cycle: Option<Instant>,
    retransmissions: BothWindows,
    /// A PDCCH is being received.
    pdcch_until: Instant,
    random_access: Option<Window>,
    /// A scheduling request was sent on PUCCH and is pending.
    scheduling_request: bool,
    /// Contention-free random access has succeeded, and no new transmission has arrived yet.
    awaits_new_transmission: bool,
    /// Everything before this time is processed.
    settled: Instant,
    awake: Duration,
}

impl Drx {
    /// A UE that was just configured, at the beginning of SFN 0, in the long cycle.
    pub fn new(config: &DrxConfig) -> Self {
        Self {
            on_duration: OnDuration::new(config),
            inactivity: None,
            short_cycle: None,
            retransmissions: BothWindows {
                downlink: Windows::new(config.harq_processes),
                uplink: Windows::new(config.harq_processes),
            },
            pdcch_until: Instant::ZERO,
            random_access: None,
            scheduling_request: false,
            awaits_new_transmission: false,
            settled: Instant::ZERO,
            awake: Duration::ZERO,
            config: config.clone(),
        }
    }

    /// A transmission is announced by a PDCCH that begins at `now`, or begins itself at `now`
    /// without one.
    pub fn on_transmission(&mut self, now: Instant, transmission: &Transmission) {
        self.settle(now);
        let Transmission { direction, kind, process, harq_rtt_starts } = *transmission;
        let (rtt, retransmission, windows) = match direction {
            Direction::Downlink => (
                self.config.harq_rtt_downlink,
                self.config.retransmission_downlink,
                &mut self.retransmissions.downlink,
            ),
            Direction::Uplink => (
                self.config.harq_rtt_uplink,
                self.config.retransmission_uplink,
                &mut self.retransmissions.uplink,
            ),
        };
        // TS 38.321 5.7: start drx-HARQ-RTT-Timer, stop drx-RetransmissionTimer; the latter starts
        // again in the first symbol after the expiry of the former.
        let start = harq_rtt_starts + rtt;
        windows.set(process, Window { start, end: start + retransmission });
        if kind != TransmissionKind::Configured {
            self.pdcch_until = self.pdcch_until.max(now + self.config.pdcch);
        }
        if kind == TransmissionKind::New {
            // TS 38.321 5.7: (re)start in the first symbol after the end of the PDCCH reception. A
            // timer that would expire during the PDCCH counts as restarted.
            self.inactivity = Some(now + self.config.pdcch + self.config.inactivity);
            self.awaits_new_transmission = false;
        }
    }

    /// The downlink data of `process` was decoded: no retransmission is expected.
    pub fn on_decoded(&mut self, now: Instant, process: u8) {
        self.settle(now);
        // TS 38.321 5.7: if the data ... was not successfully decoded, start
        // drx-RetransmissionTimerDL
        self.retransmissions.downlink.clear(process);
    }

    /// The uplink data of `process` was acknowledged: by downlink feedback information in NR, by
    /// PHICH in LTE. Without it drx-RetransmissionTimerUL always starts.
    pub fn on_acknowledged(&mut self, now: Instant, process: u8) {
        self.settle(now);
        self.retransmissions.uplink.clear(process);
    }

    /// Whether a scheduling request has been sent on PUCCH and is pending.
    pub fn on_scheduling_request(&mut self, now: Instant, sent_and_pending: bool) {
        self.settle(now);
        self.scheduling_request = sent_and_pending;
    }

    /// Random access needs the PDCCH from `start`, at `now` or later, to `end`: ra-ResponseWindow,
    /// ra-ContentionResolutionTimer (TS 38.321 5.1.4, 5.1.5). It replaces an earlier window.
    pub fn on_random_access(&mut self, now: Instant, start: Instant, end: Instant) {
        self.settle(now);
        self.random_access = Some(Window { start: start.max(now), end });
    }

    /// A random access response to a preamble that was not contention-based was received: awake
    /// until a new transmission is announced.
    pub fn on_contention_free_response(&mut self, now: Instant) {
        self.settle(now);
        self.random_access = None;
        self.awaits_new_transmission = true;
    }

    /// A DRX command was received by `now`.
    pub fn on_command(&mut self, now: Instant, command: DrxCommand) {
        self.settle(now);
        // TS 38.321 5.7: stop drx-onDurationTimer and drx-InactivityTimer
        self.on_duration.stop(now);
        self.inactivity = None;
        self.short_cycle = match command {
            DrxCommand::Drx => self.short_cycle_from(now),
            DrxCommand::LongDrx => None,
        };
    }

    /// Whether the UE is in Active Time: it monitors the PDCCH.
    pub fn is_active(&mut self, now: Instant) -> bool {
        self.state(now) < DrxState::ShortSleep
    }

    /// The current state.
    pub fn state(&mut self, now: Instant) -> DrxState {
        self.settle(now);
        // TS 38.321 5.7: the Active Time includes the time while
        if self.inactivity.is_some() {
            DrxState::Inactivity
        } else if self.on_duration.is_running(self.cycle(), now) {
            DrxState::OnDuration
        } else if self.scheduling_request {
            DrxState::SchedulingRequest
        } else if self.awaits_new_transmission
            || self.random_access.is_some_and(|window| window.contains(now))
        {
            DrxState::RandomAccess
        } else if self.pdcch_until > now || self.retransmissions.runs_until(now).is_some() {
            DrxState::Retransmission
        } else if self.cycle() == Cycle::Short {
            DrxState::ShortSleep
        } else {
            DrxState::LongSleep
        }
    }

    /// The earliest time, `now` or later, at which the UE is in Active Time if nothing else
    /// happens.
    pub fn next_active(&mut self, now: Instant) -> Instant {
        if self.is_active(now) {
            return now;
        }
        let on_duration = self.next_on_duration_start(now);
        self.next_window(now).map_or(on_duration, |start| start.min(on_duration))
    }

    /// When Active Time next begins or ends if nothing else happens; `None` if never.
    pub fn next_change(&mut self, now: Instant) -> Option<Instant> {
        let next = self.next_active(now);
        if next > now {
            return Some(next);
        }
        if self.scheduling_request
            || self.awaits_new_transmission
            || self.config.on_duration >= self.config.long_cycle
        {
            return None;
        }
        let mut end = now;
        loop {
            let reasons = [
                self.inactivity,
                self.random_access.filter(|window| window.contains(end)).map(|window| window.end),
                self.retransmissions.runs_until(end),
                Some(self.on_duration_runs_until(now, end)),
            ];
            let later = reasons.into_iter().flatten().fold(self.pdcch_until, Instant::max);
            if later <= end {
                return Some(end);
            }
            end = later;
        }
    }

    /// When the MAC sees uplink data that arrives at `now`: at once according to the specification,
    /// see [`UplinkStart`]. Call once per arrival, not again at the occasions of the scheduling
    /// request: none of them need be within an on-duration.
    pub fn uplink_start(&mut self, now: Instant) -> Instant {
        match self.config.uplink_start {
            UplinkStart::AtOnce => now,
            UplinkStart::InActiveTime => self.next_active(now),
            UplinkStart::InOnDuration => {
                self.settle(now);
                if self.on_duration.is_running(self.cycle(), now) {
                    now
                } else {
                    self.next_on_duration_start(now)
                }
            }
        }
    }

    /// How long the UE has been in Active Time until `now`.
    pub fn awake(&mut self, now: Instant) -> Duration {
        self.settle(now);
        self.awake
    }

    /// Processes what happens before `now`.
    fn settle(&mut self, now: Instant) {
        while self.settled < now {
            let from = self.settled;
            let awake = self.awake_besides_on_duration(from);
            let change = match awake {
                Some(end) => end,
                None => self.next_window(from),
            };
            let until = earliest(change, self.short_cycle).map_or(now, |at| at.min(now));
            let on_duration = self.on_duration.advance(self.cycle(), from, until);
            self.awake += if awake.is_some() { until - from } else { on_duration };
            self.settled = until;
            self.expire(until);
        }
    }

    /// Whether something other than drx-onDurationTimer keeps the UE awake at `time`, and until
    /// when at least: `Some(None)` means until something happens.
    fn awake_besides_on_duration(&self, time: Instant) -> Option<Option<Instant>> {
        if self.inactivity.is_some() {
            return Some(self.inactivity);
        }
        if self.scheduling_request || self.awaits_new_transmission {
            return Some(None);
        }
        let random_access = self.random_access.filter(|window| window.contains(time));
        let end = random_access
            .map(|window| window.end)
            .max(self.retransmissions.runs_until(time))
            .max(Some(self.pdcch_until).filter(|&end| end > time));
        end.map(Some)
    }

    /// When a window of random access or of a retransmission begins, after `time`.
    fn next_window(&self, time: Instant) -> Option<Instant> {
        let random_access = self.random_access.filter(|window| window.start > time);
        let random_access = random_access.filter(|window| window.start < window.end);
        earliest(random_access.map(|window| window.start), self.retransmissions.next_start(time))
    }

    /// Handles timers that expire at `now`.
    fn expire(&mut self, now: Instant) {
        // TS 38.321 5.7: if drx-InactivityTimer expires, (re)start drx-ShortCycleTimer and use the
        // short cycle if configured; if drx-ShortCycleTimer expires, use the long one
        if self.inactivity.is_some_and(|end| end <= now) {
            self.inactivity = None;
            self.short_cycle = self.short_cycle_from(now);
        }
        if self.short_cycle.is_some_and(|end| end <= now) {
            self.short_cycle = None;
        }
    }

    /// When drx-ShortCycleTimer, started `now`, will expire.
    fn short_cycle_from(&self, now: Instant) -> Option<Instant> {
        self.config.short_cycle.map(|short| now + short.cycle * u64::from(short.timer))
    }

    fn cycle(&self) -> Cycle {
        if self.short_cycle.is_some() { Cycle::Short } else { Cycle::Long }
    }

    /// The first start of drx-onDurationTimer, `now` or later, if nothing else happens.
    fn next_on_duration_start(&self, now: Instant) -> Instant {
        let computed =
            self.plan(now).into_iter().flatten().find_map(|piece| {
                self.on_duration.first_start(piece.cycle, piece.from, piece.until)
            });
        let pending = self.on_duration.pending().filter(|&start| start >= now);
        // The last piece of the plan has no end, so it contains a start.
        earliest(pending, computed).unwrap_or(Instant::MAX)
    }

    /// The end of the last on-duration that begins by `time`, but not before `now`, if nothing else
    /// happens.
    fn on_duration_runs_until(&self, now: Instant, time: Instant) -> Instant {
        let starts = self.plan(now).into_iter().flatten().filter_map(|piece| {
            // A start belongs to the piece in which its subframe begins.
            let subframes_end = piece.until.map(|until| until + self.config.slot_offset);
            let last = subframes_end.and_then(|end| end.checked_sub(Duration::from_nanos(1)));
            let last = last.map_or(time, |last| last.min(time));
            self.on_duration.last_start(piece.cycle, piece.from, last)
        });
        let computed = starts.map(|start| start + self.config.on_duration).max();
        self.on_duration.runs_until(time).max(computed.unwrap_or(Instant::ZERO))
    }

    /// The cycles in use from `now` on if nothing else happens.
    fn plan(&self, now: Instant) -> [Option<Piece>; 4] {
        let mut pieces = [None; 4];
        let mut from = now;
        let mut used = 0;
        let mut add = |cycle, until: Option<Instant>| {
            if until.is_none_or(|until| until > from) {
                pieces[used] = Some(Piece { cycle, from, until });
                used += 1;
                from = until.unwrap_or(from);
            }
        };
        if let (Some(expiry), Some(_)) = (self.inactivity, self.config.short_cycle) {
            if let Some(end) = self.short_cycle {
                add(Cycle::Short, Some(end.min(expiry)));
            }
            add(Cycle::Long, Some(expiry));
            add(Cycle::Short, self.short_cycle_from(expiry));
        } else if self.short_cycle.is_some() {
            add(Cycle::Short, self.short_cycle);
        }
        add(Cycle::Long, None);
        pieces
    }
}

/// A period `[from, until)` in which one cycle is in use.
#[derive(Clone, Copy)]
struct Piece {
    cycle: Cycle,
    from: Instant,
    until: Option<Instant>,
}
