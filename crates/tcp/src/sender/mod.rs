//! The sending half of an endpoint.

mod ack;
mod activity;
mod buffer;
mod burst;
mod cwnd;
mod fast_path;
mod limits;
mod losses;
mod peer_window;
mod probe;
mod rate;
mod recovery;
mod scoreboard;
mod sending;
mod stream;
mod telemetry;
mod timers;

pub use activity::Activity;
pub use limits::LimitTimes;
pub use telemetry::SenderCounters;

use airpath_base::{Duration, Flags, Instant};

use crate::congestion::{self, CongestionControl, SlowStartExit, Window};
use crate::event::{EventKind, SendLimit, SlowStartExitReason};
use crate::route::Ended;
use crate::{EndpointConfig, RttEstimator, ValidationConfig};
use buffer::{SendBuffer, Write, Writing};
use burst::Bursts;
use cwnd::CongestionWindow;
pub(crate) use fast_path::Ahead;
use limits::{Limits, Usage};
use peer_window::PeerWindow;
use probe::TailProbe;
use recovery::Recovery;
use scoreboard::{Scoreboard, Sent};
use sending::Next;
use stream::Stream;
use telemetry::Telemetry;
use timers::{Timer, Timers};

/// Largest payload of a window probe in bytes (RFC 9293 3.8.6.1: at least one).
const PROBE_BYTES: u64 = 1;

/// Sends a stream, retransmits what is lost, and keeps within both windows.
#[derive(Debug)]
pub(crate) struct Sender {
    mss: u32,
    sack: bool,
    timestamps: bool,
    timestamp_tick: Duration,
    pub(crate) stream: Stream,
    validation: ValidationConfig,
    pub(crate) rtt: RttEstimator,
    pub(crate) congestion: CongestionWindow,
    scoreboard: Scoreboard,
    recovery: Recovery,
    tail_probe: TailProbe,
    bursts: Bursts,
    usage: Usage,
    pub(crate) ecn: Ecn,
    peer: PeerWindow,
    pub(crate) timers: Timers,
    pub(crate) limits: Limits,
    pub(crate) telemetry: Telemetry,
}

/// Explicit congestion notification of the sending half (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ecn {
    NotNegotiated,
    Negotiated,
    /// The next new segment carries CWR: cwnd was reduced (6.1.2).
    ReductionToTell,
}

/// A piece of the stream to put into a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) seq: u64,
    pub(crate) len: u32,
    pub(crate) fin: bool,
    /// Whether it was sent before.
    pub(crate) again: bool,
    /// Whether it tells the peer that cwnd was reduced (RFC 3168 6.1.2).
    pub(crate) cwr: bool,
    /// Whether it is the last of a burst.
    pub(crate) push: bool,
}

impl Sender {
    pub(crate) fn new(config: &EndpointConfig) -> Self {
        let (congestion, window) = congestion::build(config);
        Self::with(config, congestion, window)
    }

    /// A sender with this congestion control and initial window.
    pub(crate) fn with(
        config: &EndpointConfig,
        congestion: Box<dyn CongestionControl>,
        window: Window,
    ) -> Self {
        Self {
            mss: config.mss,
            sack: config.sack,
            timestamps: config.timestamps,
            timestamp_tick: config.timestamp_tick,
            stream: Stream::new(SendBuffer::new(
                config,
                config
                    .send_buffer_factor
                    .map(|factor| congestion.send_buffer_factor().unwrap_or(factor)),
                window.cwnd,
            )),
            validation: config.validation,
            rtt: RttEstimator::new(config.rto).with_route(&config.route),
            scoreboard: Scoreboard::new(congestion.is_model_based()),
            congestion: CongestionWindow::new(config, congestion, window),
            recovery: Recovery::new(config.recovery),
            timers: Timers::new(config.recovery.timer_tick),
            tail_probe: TailProbe::default(),
            bursts: Bursts::new(config),
            usage: Usage::default(),
            ecn: Ecn::NotNegotiated,
            peer: PeerWindow::default(),
            limits: Limits::default(),
            telemetry: Telemetry::default(),
        }
    }

    /// Adopts what the two ends agreed on in the handshake.
    pub(crate) fn establish(&mut self, agreed: &EndpointConfig, peer_window: u64) {
        self.sack = agreed.sack;
        self.timestamps = agreed.timestamps;
        self.peer.set(peer_window);
        self.update_pacing();
    }

    /// The handshake is complete, and its RTT measured if possible.
    pub(crate) fn on_established(&mut self) {
        let srtt = self.rtt.srtt();
        self.congestion.notify(|control, window| control.on_established(srtt, window));
        self.update_pacing();
        self.write();
    }

    /// The application offers `bytes` more.
    pub(crate) fn offer(&mut self, bytes: u64) {
        self.stream.offer(bytes);
        self.bursts.resume();
        self.write();
    }

    /// The application writes, if the send buffer has room. Returns whether it wrote.
    fn write(&mut self) -> bool {
        // Before the handshake is over there is no peer to write for.
        if !self.stream.buffer().is_memory() || self.peer.max() == 0 {
            return false;
        }
        let burst = self.burst_bytes();
        let wrote = self.stream.write(&Writing {
            bursts: self.scoreboard.bursts(),
            peer_window: self.peer.max(),
            leaves: u64::from(self.leaves_at_once()) * u64::from(self.mss),
            burst,
        });
        // draft-cardwell-iccrg-bbr-congestion-control-02 4.1.2.4: less than a segment was waiting
        // to be sent, cwnd was not full and everything lost had been retransmitted. Seen with Linux
        // 6.18: this is checked when the application writes, including one that waited for room in
        // a full send buffer.
        if wrote == Write::Ahead
            && self.scoreboard.pipe() < self.congestion.segments()
            && !self.scoreboard.waits_to_resend()
        {
            self.scoreboard.limited_by_application();
        }
        wrote != Write::None
    }

    /// Notes that nothing more can be sent for this reason, unless an application that waited for
    /// room in the send buffer writes.
    #[inline]
    pub(crate) fn stop(&mut self, now: Instant, mut limit: SendLimit) -> Next {
        if self.stream.buffer_mut().takes_freed() {
            let (cwnd, pipe) = (self.congestion.segments(), self.scoreboard.pipe());
            // Seen with Linux 6.18: a buffer that fills cwnd is large enough.
            if pipe < cwnd {
                self.stream.buffer_mut().grow(cwnd);
            }
            if self.write() && limit == SendLimit::SendBuffer {
                match self.new_piece(now, cwnd, pipe) {
                    Ok(piece) => return (Some(self.send_new(now, piece)), None),
                    Err(other) => limit = other,
                }
            }
        }
        self.note_limit(now, limit);
        (None, (!self.stream.has_work()).then_some(Ahead::Silent))
    }

    /// Whether the congestion control is to decide now.
    pub(crate) fn decision_due(&self) -> bool {
        self.congestion.control().decision_due()
    }

    /// Why the congestion control cannot go on, if it cannot.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.congestion.control().failure()
    }

    /// The state in which the connection ends.
    pub(crate) fn ended(&self, send_buffer: u64) -> Ended {
        Ended {
            window: self.congestion.window(),
            rtt: self.rtt.srtt(),
            rttvar: self.rtt.deviation(),
            samples: self.rtt.samples(),
            mss: self.mss,
            send_buffer,
        }
    }

    /// RFC 6675's pipe, in segments.
    pub(crate) fn in_flight(&self) -> u32 {
        self.scoreboard.pipe()
    }

    /// The earliest of the retransmission, probe, reordering and pacing timers.
    #[inline(always)]
    pub(crate) fn timer(&self) -> Option<Instant> {
        self.timers.earliest(self.bursts.due())
    }

    /// RFC 6298 (5.1): starts the timer if it is not running.
    #[inline]
    fn start_timer(&mut self, now: Instant) {
        if self.timers.due(Timer::Retransmission).is_none() {
            self.arm_timer(now);
        }
    }

    #[inline]
    fn arm_timer(&mut self, now: Instant) {
        self.timers.set(Timer::Retransmission, self.timers.after(now, self.rtt.rto()));
    }

    /// Stops probing: the peer's window has grown, or took a probe.
    #[cold]
    fn stop_persisting(&mut self, now: Instant, opened: bool) {
        self.rtt.end_back_off();
        self.timers.stop(Timer::Retransmission);
        let outstanding = !self.scoreboard.is_empty();
        self.peer.stop_probing(opened && outstanding);
        if outstanding {
            self.arm_timer(now);
        }
    }

    pub(crate) fn peer_window_segments(&self) -> u32 {
        self.peer.segments(self.mss)
    }

    /// Advances time to `now`.
    pub(crate) fn on_timer(&mut self, now: Instant) {
        if self.timer().is_some_and(|at| at <= now) {
            self.bursts.resume();
        }
        self.bursts.on_timer(now);
        if self.timers.expire(Timer::Reordering, now) {
            self.on_reordering_timer(now);
        }
        if self.timers.expire(Timer::Probe, now) {
            self.on_probe_timer();
        }
        if self.timers.expire(Timer::Retransmission, now) {
            self.on_retransmission_timer(now);
        }
    }

    fn on_retransmission_timer(&mut self, now: Instant) {
        if self.peer.is_persisting() || self.peer.wnd() == 0 {
            // RFC 9293 3.8.6.1: this is not a sign of congestion, even if the window shrank with
            // data in flight.
            self.peer.on_persist_timer();
            self.rtt.back_off();
            return;
        }
        self.time_out(now);
        self.arm_timer(now);
    }

    /// There is no slow start if an ssthresh that was kept is not above the initial window.
    pub(crate) fn skip_slow_start(&mut self, now: Instant) {
        if !self.congestion.window().in_slow_start() {
            self.leave_slow_start_by(now, SlowStartExitReason::Ssthresh);
        }
    }

    /// Congestion ends slow start, except for a model-based algorithm, which decides by itself.
    fn leave_slow_start_by(&mut self, now: Instant, reason: SlowStartExitReason) {
        if !self.congestion.is_model_based() {
            self.leave_slow_start(now, SlowStartExit::by(reason));
        }
    }

    /// Records the first time that slow start ends.
    #[cold]
    fn leave_slow_start(&mut self, now: Instant, exit: SlowStartExit) {
        if self.congestion.leave_slow_start() {
            let cwnd = self.congestion.segments();
            let srtt = self.rtt.srtt().unwrap_or_default();
            let SlowStartExit { reason, round_rtt, base_rtt } = exit;
            let min_rtt = base_rtt.or(self.rtt.min()).unwrap_or_default();
            let kind = EventKind::SlowStartExit { reason, cwnd, srtt, min_rtt, round_rtt };
            self.telemetry.record(now, kind);
        }
    }
}

impl Piece {
    fn new(seq: u64, len: u32, fin: bool) -> Self {
        Self { seq, len, fin, again: false, cwr: false, push: false }
    }

    /// Flags of the segment that carries it.
    #[inline(always)]
    pub(crate) fn flags(&self) -> Flags {
        let when = |set: bool, flag: Flags| if set { flag } else { Flags::NONE };
        when(self.fin, Flags::FIN)
            .with(when(self.cwr, Flags::CWR))
            .with(when(self.push, Flags::PSH))
    }
}

impl Sent {
    fn piece(&self) -> Piece {
        let len = self.end - self.seq - u64::from(self.fin);
        Piece::new(self.seq, len as u32, self.fin)
    }
}
