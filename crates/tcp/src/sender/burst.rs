//! When segments leave: pacing, and the bursts of segmentation offload.

use airpath_base::{Duration, Instant};

use super::Sender;
use crate::{EndpointConfig, OffloadConfig, PacingConfig, Window};

/// As in Linux, this many segments at the start of a connection are not paced; only the last of
/// them makes the next one wait.
const UNPACED: u64 = 10;
/// A burst waits for a larger one only this soon after the last. Seen with Linux 6.18 between 5 and
/// 34 Mb/s: this is judged once for everything that an acknowledgement lets out. If
/// acknowledgements are further apart than this, as at 20 Mb/s, nothing waits; if they are closer,
/// single segments do.
const RECENT: Duration = Duration::from_millis(1);

/// A nanosecond in seconds.
const SECONDS_OF_NANOSECOND: f64 = 1e-9;

#[derive(Debug)]
pub(super) struct Bursts {
    pacing: Option<PacingConfig>,
    offload: Option<OffloadConfig>,
    /// Whether pacing applies, by the profile or by the congestion control.
    paced: bool,
    rate: Rate,
    /// [`OffloadConfig::time`] in seconds.
    offload_s: f64,
    /// When the next burst may be sent, and how late the last one was.
    next_at: Instant,
    credit: Duration,
    /// When the pacing timer expires.
    due: Option<Instant>,
    /// Segments left in this burst, and its size at the start.
    left: u32,
    size: u32,
    segments: u64,
    /// Whether the current run of transmissions began shortly after the previous burst; `None`
    /// before it begins.
    recent: Option<bool>,
    /// Whether a small burst waits for an acknowledgement, a timer or a write.
    deferred: bool,
}

/// The pacing rate, in payload bytes per second.
#[derive(Clone, Copy, Debug)]
enum Rate {
    /// Before the first RTT.
    Unknown,
    Known(f64),
    /// Payload bytes per round trip, times a ratio. It is not divided before it is needed: most
    /// acknowledgements release nothing that is paced.
    Of {
        bytes: f64,
        srtt: Duration,
        ratio: f64,
    },
}

impl Bursts {
    pub(super) fn new(config: &EndpointConfig) -> Self {
        Self {
            pacing: config.pacing,
            offload: config.offload,
            paced: config.pacing.is_some(),
            rate: Rate::Unknown,
            offload_s: config.offload.map_or(0.0, |offload| offload.time.as_secs_f64()),
            next_at: Instant::ZERO,
            credit: Duration::ZERO,
            due: None,
            left: 0,
            size: 0,
            segments: 0,
            recent: None,
            deferred: false,
        }
    }

    /// Whether the next burst must wait; if so, the timer is started.
    #[inline]
    pub(super) fn waits(&mut self, now: Instant) -> bool {
        if !self.paced || self.left > 0 || self.next_at <= now {
            return false;
        }
        self.due = Some(self.next_at);
        true
    }

    /// When the pacing timer expires.
    #[inline(always)]
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Stops the pacing timer if it has expired.
    pub(super) fn on_timer(&mut self, now: Instant) {
        self.due.take_if(|at| *at <= now);
    }

    /// Whether segmentation offload sends segments in bursts.
    #[inline(always)]
    pub(super) const fn is_offloaded(&self) -> bool {
        self.offload.is_some()
    }

    /// How long the next burst must wait.
    #[inline]
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.next_at.saturating_since(now)
    }

    /// How many of these segments are sent without waiting for the pacer.
    pub(super) fn limit(&self, room: u32) -> u32 {
        let unpaced = u32::try_from(UNPACED.saturating_sub(self.segments)).unwrap_or(0);
        if self.paced { room.min(self.size.max(unpaced)) } else { room }
    }

    #[inline]
    pub(super) fn in_burst(&self) -> bool {
        self.left > 0
    }

    /// Segments left in this burst.
    #[inline]
    pub(super) fn left(&self) -> u32 {
        self.left
    }

    #[inline]
    pub(super) fn is_paced(&self) -> bool {
        self.paced
    }

    /// Whether the next segment is the last of a burst that is marked by PSH.
    #[inline]
    pub(super) fn pushes(&self) -> bool {
        self.left == 1 && self.size > 1 && self.offload.is_some_and(|offload| offload.push)
    }

    /// Whether the next segment is the first of a burst.
    #[inline]
    pub(super) fn begins(&self) -> bool {
        self.left == 0 || self.left == self.size
    }

    /// Ends the burst: the rest of it cannot be sent.
    #[inline]
    pub(super) fn end(&mut self) {
        self.left = 0;
    }

    /// Ends a run of transmissions: nothing more is sent for now.
    #[inline]
    pub(super) fn pause(&mut self) {
        self.recent = None;
    }

    /// Something happened that a small burst waits for.
    #[inline]
    pub(super) fn resume(&mut self) {
        self.deferred = false;
    }

    /// Whether a small burst waits for something to happen.
    pub(super) fn is_deferred(&self) -> bool {
        self.deferred
    }

    /// The pacing rate in payload bytes per second, once it is known.
    #[inline]
    fn rate(&mut self) -> Option<f64> {
        match self.rate {
            Rate::Unknown => None,
            Rate::Known(rate) => Some(rate),
            Rate::Of { bytes, srtt, ratio } => {
                let rate = bytes / srtt.as_secs_f64() * ratio;
                self.rate = Rate::Known(rate);
                Some(rate)
            }
        }
    }

    /// Counts a segment that is sent.
    #[inline]
    pub(super) fn sent(&mut self, now: Instant, bytes: u32) {
        self.segments += 1;
        let alone = self.left == 0;
        self.left = self.left.saturating_sub(1);
        if self.paced {
            self.make_next_wait(now, bytes, alone);
        }
    }

    /// Sets when the next burst may be sent, after a paced segment of this size; `alone`: it is not
    /// part of a burst.
    #[inline(never)]
    fn make_next_wait(&mut self, now: Instant, bytes: u32, alone: bool) {
        if self.next_at < now {
            self.credit = now - self.next_at;
            self.next_at = now;
        } else if alone {
            self.credit = Duration::ZERO;
        }
        // The burst that completes the unpaced segments counts in full.
        let unpaced = self.segments + u64::from(self.left) < UNPACED;
        if unpaced {
            return;
        }
        let Some(rate) = self.rate() else { return };
        let time = Duration::from_secs_f64(f64::from(bytes) / rate);
        // After a late burst the next one waits less, down to half of its time.
        let caught_up = self.credit.min(time / 2);
        self.credit = self.credit.saturating_sub(caught_up);
        self.next_at += time - caught_up;
    }
}

impl Sender {
    /// Updates the rate after an acknowledgement: it follows cwnd and the RTT.
    #[inline]
    pub(crate) fn update_pacing(&mut self) {
        if self.congestion.is_model_based()
            && let Some(rate) = self.congestion.control().pacing_rate()
        {
            self.bursts.paced = true;
            self.bursts.rate = if rate > 0.0 { Rate::Known(rate) } else { Rate::Unknown };
            return;
        }
        if self.bursts.pacing.is_none() && self.bursts.offload.is_none() {
            return;
        }
        let Some(srtt) = self.rtt.srtt().filter(|srtt| srtt.as_nanos() > 0) else { return };
        let PacingConfig { slow_start_ratio, congestion_avoidance_ratio } =
            self.bursts.pacing.unwrap_or(PacingConfig::LINUX);
        let Window { cwnd, ssthresh } = self.congestion.window();
        let early = cwnd < ssthresh / 2.0;
        let ratio = if early { slow_start_ratio } else { congestion_avoidance_ratio };
        let bytes = cwnd.max(f64::from(self.scoreboard.flight())) * f64::from(self.mss);
        self.bursts.rate = Rate::Of { bytes, srtt, ratio };
    }

    /// Decides on a burst of up to `room` segments; `whole`: it takes all of a piece that was
    /// written. Returns false if it waits for the next acknowledgement to become larger.
    pub(super) fn begin_burst(&mut self, now: Instant, room: u32, whole: bool) -> bool {
        let Some(offload) = self.bursts.offload else { return true };
        if self.bursts.deferred {
            return false;
        }
        let once = offload.ack_within.as_nanos() == 0;
        let recent = self.bursts.recent.filter(|_| once).unwrap_or_else(|| {
            let last = self.timers.last_sent_at().max(self.bursts.next_at);
            now.saturating_since(last) <= RECENT
        });
        self.bursts.recent = Some(recent);
        let may_wait = !whole && recent && self.defers(now, &offload, room);
        if may_wait && self.is_surely_small(&offload, room) {
            self.bursts.deferred = true;
            return false;
        }
        let goal = self.burst_goal(&offload);
        if may_wait && room < goal {
            self.bursts.deferred = true;
            return false;
        }
        self.bursts.left = goal.min(room.max(1));
        self.bursts.size = self.bursts.left;
        self.bursts.credit = Duration::ZERO;
        true
    }

    /// Segments that would be sent as soon as they are written.
    pub(super) fn leaves_at_once(&self) -> u32 {
        let (cwnd, peer) = (self.congestion.segments(), self.peer_window_segments());
        let room = cwnd.min(peer).saturating_sub(self.scoreboard.pipe());
        self.bursts.limit(room)
    }

    /// Payload of a full burst at the current rate; `None` without segmentation offload.
    pub(super) fn burst_bytes(&mut self) -> Option<u64> {
        let offload = self.bursts.offload?;
        Some(u64::from(self.burst_goal(&offload)) * u64::from(self.mss))
    }

    /// Whether this many segments are less than a full burst by at least one segment, as far as
    /// this can be told without a division.
    fn is_surely_small(&self, offload: &OffloadConfig, room: u32) -> bool {
        let Rate::Of { bytes, srtt, ratio } = self.bursts.rate else { return false };
        let ahead = (u64::from(room) + 2) * u64::from(self.mss);
        let in_time = bytes * ratio * self.bursts.offload_s;
        ahead <= u64::from(offload.max_bytes)
            && in_time > ahead as f64 * srtt.as_nanos() as f64 * SECONDS_OF_NANOSECOND
            && self.congestion.control().burst().is_none()
    }

    /// Segments of a full burst at the current rate.
    fn burst_goal(&mut self, offload: &OffloadConfig) -> u32 {
        let most = (offload.max_bytes / self.mss).max(1);
        let own = self.congestion.control().burst();
        let goal = own.unwrap_or_else(|| {
            let bytes = self.bursts.rate().unwrap_or_default() * self.bursts.offload_s;
            (bytes / f64::from(self.mss)) as u32
        });
        goal.max(if own.is_some() { 1 } else { offload.min_segments }).min(most)
    }

    /// Whether a small burst waits for the next acknowledgement.
    fn defers(&self, now: Instant, offload: &OffloadConfig, room: u32) -> bool {
        if offload.window_divisor == 0 || self.recovery.phase().repairs() {
            return false;
        }
        // room >= window / divisor, for cwnd and the peer's window, without a division.
        let enough = u64::from(room) * u64::from(offload.window_divisor);
        if u64::from(self.congestion.segments()) <= enough
            || self.peer.wnd() <= enough * u64::from(self.mss)
        {
            return false;
        }
        // The acknowledgement must be near: that of the first segment is expected one SRTT after
        // it.
        let srtt = self.rtt.srtt().unwrap_or_default();
        let near = match offload.ack_within {
            Duration::ZERO => srtt / 2,
            within => within.min(srtt / 2),
        };
        self.scoreboard.first_sent_at().is_some_and(|sent| now + near >= sent + srtt)
    }
}

impl PacingConfig {
    /// net.ipv4.tcp_pacing_ss_ratio and tcp_pacing_ca_ratio (ip-sysctl).
    pub const LINUX: Self = Self { slow_start_ratio: 2.0, congestion_avoidance_ratio: 1.2 };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The answer that is given without a division is right.
        #[test]
        fn what_is_surely_small_is_smaller_than_a_full_burst(
            (bytes, rtt_us, ratio) in (1e3f64..1e9, 1u64..1_000_000, 0.5f64..3.0),
            (room, mss, max_bytes) in (0u32..60, 500u32..1500, 1000u32..200_000),
        ) {
            let offload = OffloadConfig {
                max_bytes,
                time: Duration::from_nanos(976_562),
                min_segments: 2,
                window_divisor: 3,
                ack_within: Duration::ZERO,
                push: true,
            };
            let config =
                EndpointConfig { mss, offload: Some(offload), ..EndpointConfig::default() };
            let mut sender = Sender::new(&config);
            sender.bursts.rate = Rate::Of { bytes, srtt: Duration::from_micros(rtt_us), ratio };
            let surely_small = sender.is_surely_small(&offload, room);
            let goal = sender.burst_goal(&offload);
            prop_assert!(!surely_small || room < goal);
            // That answer exists for all bursts except nearly full ones.
            prop_assert!(surely_small || room + 2 >= goal.saturating_sub(1));
        }
    }
}
