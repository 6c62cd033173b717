//! One sender, from the first observation to the last.

use airpath_base::Duration;

use super::hystart::{self, Hystart};
use super::observed::{Kind, Observation, State, What};

/// What is kept of a sender in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// Whether every acknowledgement is kept.
    pub(crate) acks: bool,
    /// Smallest distance of the points that are kept for samples, in nanoseconds.
    pub(crate) spacing_ns: u64,
}

impl Keep {
    /// For samples at that interval: each gets the state from at most a twentieth of the interval
    /// before it, so that a long run needs memory in proportion to its samples.
    pub(crate) fn for_samples(interval: Duration, acks: bool) -> Self {
        Self { acks, spacing_ns: (interval.as_nanos() / 20).max(1_000_000) }
    }
}

/// `tcpi_ca_state` (RFC 5681, RFC 3168, RFC 6298)
const OPEN: u8 = 0;
const DISORDER: u8 = 1;
const CWR: u8 = 2;
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;

/// The observations of a sender.
#[derive(Debug)]
pub(super) struct Track {
    /// The first observation; a closed socket has no port.
    pub(super) first: Observation,
    pub(super) congestion: &'static str,
    /// Every acknowledgement, if requested.
    pub(super) acks: Option<Vec<Point>>,
    /// Points at the distance that [`Keep`] sets.
    pub(super) points: Vec<Point>,
    pub(super) events: Vec<Happened>,
    pub(super) exit: Option<SlowStartExit>,
    pub(super) timeouts: u64,
    /// Time-outs that the kernel counted before (`tcpi_total_rto`): those of the handshake.
    timeouts_before: u64,
    pub(super) undos: u64,
    /// An ssthresh above cwnd in the first slow start: one that the kernel has kept.
    kept_ssthresh: Option<u32>,
    /// The beginning, if its ssthresh leaves no room for a slow start: one that the kernel has kept,
    /// or the effect of a lost SYN.
    without_slow_start: Option<Observation>,
    /// ssthresh of a reduction that may be undone.
    reduced_to: Option<u32>,
    /// An acknowledgement whose effect is not known yet.
    pending_ns: Option<u64>,
    pub(super) last: State,
    pub(super) last_ns: u64,
    /// Whether its handshake is complete, possibly before the first observation.
    established: bool,
    hystart: hystart::Follower,
    /// Whether the connection is closed.
    pub(super) ended: bool,
    spacing_ns: u64,
}

/// The state at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) time_ns: u64,
    pub(super) state: State,
    /// The acknowledgement's own RTT, if it gave one.
    pub(super) rtt_us: Option<u32>,
    /// HyStart's state while it may end slow start, and when it has just done so.
    pub(super) hystart: Option<Hystart>,
}

/// An event in the form for tables.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Happened {
    pub(super) time_ns: u64,
    pub(super) kind: &'static str,
    pub(super) reason: Option<&'static str>,
    pub(super) cwnd: Option<u32>,
    pub(super) value: Option<f64>,
    pub(super) packets: Option<u64>,
}

/// How the first slow start ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct SlowStartExit {
    pub(super) time_ns: u64,
    pub(super) cwnd: u32,
    pub(super) reason: &'static str,
    pub(super) min_rtt_us: u32,
    pub(super) round_rtt_us: Option<u32>,
}

impl Track {
    pub(super) fn new(first: &Observation, keep: Keep) -> Self {
        Self {
            first: first.clone(),
            congestion: first.congestion,
            acks: keep.acks.then(Vec::new),
            points: Vec::new(),
            events: Vec::new(),
            exit: None,
            timeouts: 0,
            timeouts_before: first.state.timeouts.into(),
            undos: 0,
            kept_ssthresh: None,
            without_slow_start: None,
            reduced_to: None,
            pending_ns: None,
            last: first.state,
            last_ns: first.time_ns,
            established: !matches!(first.kind, Kind::Begin | Kind::Congestion { .. })
                || first.state.acked_bytes > 0,
            hystart: hystart::Follower::default(),
            ended: false,
            spacing_ns: keep.spacing_ns,
        }
    }

    pub(super) fn note(&mut self, seen: &Observation) {
        match seen.kind {
            Kind::Begin => {
                self.event(seen.time_ns, "established");
                self.established = true;
                self.timeouts_before = seen.state.timeouts.into();
                let begins_beyond = seen.state.ssthresh.is_some_and(|it| it <= seen.state.cwnd);
                self.without_slow_start = begins_beyond.then(|| seen.clone());
                // The effect of a lost SYN on ssthresh is gone with the first acknowledgement.
                let state = State { ssthresh: None, ..seen.state };
                self.settle(&Observation { state, ..seen.clone() });
            }
            // During the processing of an acknowledgement, or by a timer.
            Kind::Congestion { before, after } if self.established => {
                self.change(seen, before, after);
            }
            Kind::Congestion { .. } => {}
            Kind::Poll => self.settle(seen),
            Kind::Ack | Kind::End => {
                self.catch_up(seen);
                self.settle(seen);
            }
        }
        (self.last, self.last_ns) = (seen.state, seen.time_ns);
        self.ended |= seen.kind == Kind::End;
        self.congestion = seen.congestion;
    }

    /// Adds time-outs that the kernel has counted but for which there is no record, because there
    /// may have been no room.
    fn catch_up(&mut self, seen: &Observation) {
        let known = self.timeouts_before + self.timeouts;
        let counted = u64::from(seen.state.timeouts);
        for _ in known..if self.established { counted } else { 0 } {
            self.change(seen, LOSS, LOSS);
        }
    }

    /// The current state is what the previous acknowledgement, if there was one, left.
    fn settle(&mut self, seen: &Observation) {
        let pending = self.pending_ns.take();
        if seen.kind == Kind::Ack {
            self.pending_ns = Some(seen.time_ns);
        }
        let (time_ns, state) = (pending.unwrap_or(seen.time_ns), seen.state);
        if seen.kind == Kind::Poll {
            self.poll_kernel(seen);
        }
        self.check_for_undo(time_ns, &state);
        self.check_for_exit(time_ns, seen);
        let rtt_us = state.rtt_us.filter(|_| self.last.delivered != state.delivered);
        let hystart = self.hystart.row(seen);
        let point = Point { time_ns, state, rtt_us, hystart };
        if self.points.last().is_none_or(|last| time_ns >= last.time_ns + self.spacing_ns) {
            self.points.push(point);
        }
        let polled = seen.kind == Kind::Poll && self.last.acked_bytes != state.acked_bytes;
        if let Some(acks) = self.acks.as_mut().filter(|_| pending.is_some() || polled) {
            acks.push(point);
        }
    }

    /// The congestion state changes; windows have been reduced already.
    fn change(&mut self, seen: &Observation, before: u8, after: u8) {
        let (time_ns, state) = (seen.time_ns, &seen.state);
        match after {
            OPEN | DISORDER => {
                self.check_for_undo(time_ns, state);
                if matches!(before, RECOVERY | LOSS) {
                    self.event(time_ns, "recovery_end").cwnd = Some(state.cwnd);
                }
            }
            CWR => self.reduce("reduction", seen),
            RECOVERY => self.reduce("recovery_start", seen),
            LOSS => {
                self.timeouts += 1;
                self.reduce("retransmission_timeout", seen);
            }
            _ => {}
        }
    }

    fn reduce(&mut self, kind: &'static str, seen: &Observation) {
        let state = &seen.state;
        let cwnd = if state.prior_cwnd > 0 { state.prior_cwnd } else { self.last.cwnd };
        self.reduced_to = state.ssthresh;
        if self.exit.is_none() && state.ssthresh.is_some() && seen.congestion != "bbr" {
            self.leave(seen.time_ns, cwnd, "loss", seen);
        }
        let event = self.event(seen.time_ns, kind);
        if kind == "retransmission_timeout" {
            event.value = Some(state.rto_ms);
        } else {
            (event.cwnd, event.value) = (Some(cwnd), state.ssthresh.map(f64::from));
            event.packets = (kind == "recovery_start").then_some(u64::from(state.lost));
        }
    }

    /// Finds changes between two polls that were not reported.
    fn poll_kernel(&mut self, seen: &Observation) {
        let (before, after) = (self.last.congestion_state, seen.state.congestion_state);
        let timed_out = seen.state.timeouts.saturating_sub(self.last.timeouts);
        for _ in 0..timed_out {
            self.change(seen, before, LOSS);
        }
        if before != after && !(after == LOSS && timed_out > 0) {
            self.change(seen, before, after);
        }
    }

    /// Only an undo raises ssthresh without another reduction.
    fn check_for_undo(&mut self, time_ns: u64, state: &State) {
        let Some(reduced_to) = self.reduced_to else { return };
        if state.ssthresh.is_none_or(|ssthresh| ssthresh > reduced_to) {
            self.reduced_to = None;
            self.undos += 1;
            self.event(time_ns, "undo").cwnd = Some(state.cwnd);
        }
    }

    fn check_for_exit(&mut self, time_ns: u64, seen: &Observation) {
        let Some(ssthresh) = seen.state.ssthresh.filter(|_| self.exit.is_none()) else { return };
        if seen.found.what == What::Nothing
            && seen.congestion != "bbr"
            && ssthresh > seen.state.cwnd
        {
            self.kept_ssthresh = Some(ssthresh);
            return;
        }
        let began = self.without_slow_start.take().filter(|it| it.state.ssthresh == Some(ssthresh));
        if let (Some(began), What::Nothing, true) =
            (began, seen.found.what, seen.congestion != "bbr")
        {
            self.leave(began.time_ns, began.state.cwnd, "ssthresh", &began);
            return;
        }
        let (cwnd, reason) = match (seen.found.what, seen.congestion) {
            // HyStart sets ssthresh to cwnd.
            (What::Exit(reason), _) => (ssthresh, reason),
            (What::Something, _) => (ssthresh, hystart_reason(seen)),
            (What::Nothing, "bbr") => (seen.state.cwnd, "full_pipe"),
            (What::Nothing, _) if self.kept_ssthresh == Some(ssthresh) => {
                (seen.state.cwnd, "ssthresh")
            }
            // TCP_INFO does not show which of its tests it was.
            (What::Nothing, _) => (ssthresh, "hystart"),
        };
        self.leave(time_ns, cwnd, reason, seen);
    }

    /// Slow start ends for the first time.
    fn leave(&mut self, time_ns: u64, cwnd: u32, reason: &'static str, seen: &Observation) {
        let hystart = seen.found.what != What::Nothing && reason != "loss";
        let base = seen.found.base_rtt_us.filter(|_| hystart).or(seen.state.min_rtt_us);
        let round_rtt_us =
            seen.found.round_rtt_us.filter(|_| hystart && !matches!(reason, "ack_train"));
        let min_rtt_us = base.unwrap_or(0);
        self.exit = Some(SlowStartExit { time_ns, cwnd, reason, min_rtt_us, round_rtt_us });
        let event = self.event(time_ns, "slow_start_exit");
        event.reason = Some(reason);
        event.cwnd = Some(cwnd);
        event.value = seen.state.srtt_us.map(|srtt| f64::from(srtt) / 1e3);
    }

    fn event(&mut self, time_ns: u64, kind: &'static str) -> &mut Happened {
        let (reason, cwnd, value, packets) = (None, None, None, None);
        self.events.push(Happened { time_ns, kind, reason, cwnd, value, packets });
        self.events.last_mut().expect("it was pushed")
    }
}

/// The kernel's CUBIC reports that HyStart ended slow start, but not by which test: it was the
/// delay test if the RTT of a round with enough samples is above the threshold.
fn hystart_reason(seen: &Observation) -> &'static str {
    let found = &seen.found;
    let sampled = found.round.is_some_and(|round| round.samples >= hystart::SAMPLES);
    match (found.base_rtt_us, found.round_rtt_us.filter(|_| sampled)) {
        (Some(base), Some(round)) if round > hystart::highest(base) => "delay",
        _ => "ack_train",
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::observation::observer::observed::{Found, Round};

    const MS: u64 = 1_000_000;

    fn seen(ms: u64, kind: Kind, cwnd: u32, ssthresh: Option<u32>) -> Observation {
        Observation {
            time_ns: ms * MS,
            end: 0,
            cookie: 1,
            kind,
            v6: false,
            local_port: 1,
            remote_port: 2,
            remote: Ipv4Addr::LOCALHOST.into(),
            congestion: "cubic",
            state: State { cwnd, ssthresh, delivered: ms as u32, ..State::default() },
            found: Found::default(),
        }
    }

    fn found(what: What, base: u32, round: u32, seen: Observation) -> Observation {
        let (base_rtt_us, round_rtt_us) = (Some(base), Some(round));
        let round = Some(Round {
            css: None,
            samples: 8,
            ack_train_us: Some(9_000),
            ack_train_limit_us: Some(20_000),
        });
        Observation { found: Found { what, base_rtt_us, round_rtt_us, round }, ..seen }
    }

    fn track(all: &[Observation]) -> Track {
        let mut track = Track::new(&all[0], Keep { acks: true, spacing_ns: 1_000_000 });
        all.iter().for_each(|seen| track.note(seen));
        track
    }

    fn kinds(track: &Track) -> Vec<(u64, &str)> {
        track.events.iter().map(|event| (event.time_ns / MS, event.kind)).collect()
    }

    #[test]
    fn a_row_has_what_its_acknowledgement_left() {
        let track = track(&[
            seen(1, Kind::Begin, 10, None),
            seen(5, Kind::Ack, 10, None),
            seen(6, Kind::Ack, 12, None),
            seen(9, Kind::End, 14, None),
        ]);
        let rows: Vec<_> =
            track.acks.iter().flatten().map(|row| (row.time_ns / MS, row.state.cwnd)).collect();
        assert_eq!(rows, [(5, 12), (6, 14)]);
    }

    #[test]
    fn memory_is_for_samples_not_for_acknowledgements() {
        let interval = Duration::from_millis(100);
        let all: Vec<_> = (0..2_000).map(|ms| seen(ms, Kind::Ack, 10, None)).collect();
        let mut track = Track::new(&all[0], Keep::for_samples(interval, false));
        all.iter().for_each(|seen| track.note(seen));
        assert_eq!((track.points.len(), track.acks.is_none()), (400, true));
    }

    #[test]
    fn an_exit_belongs_to_the_acknowledgement_before_and_to_its_test() {
        let exit = |base, round| {
            let ack = |ms, cwnd, ssthresh| seen(ms, Kind::Ack, cwnd, ssthresh);
            let after = found(What::Something, base, round, ack(7, 102, Some(100)));
            track(&[ack(5, 90, None), ack(6, 100, None), after]).exit.unwrap()
        };
        // An eighth of 40 ms is 5 ms.
        let delay = exit(40_000, 45_001);
        assert_eq!((delay.time_ns, delay.cwnd, delay.reason), (6 * MS, 100, "delay"));
        assert_eq!((delay.min_rtt_us, delay.round_rtt_us), (40_000, Some(45_001)));
        let train = exit(40_000, 45_000);
        assert_eq!((train.reason, train.round_rtt_us), ("ack_train", None));
        // At least 4 ms, at most 16 ms.
        assert_eq!(
            (exit(8_000, 12_000).reason, exit(8_000, 12_001).reason),
            ("ack_train", "delay")
        );
        assert_eq!(exit(400_000, 416_001).reason, "delay");
    }

    #[test]
    fn slow_start_ends_at_an_ssthresh_that_the_kernel_has_kept() {
        let kept = track(&[
            seen(1, Kind::Begin, 10, Some(40)),
            seen(5, Kind::Ack, 10, Some(40)),
            seen(6, Kind::Ack, 20, Some(40)),
            seen(7, Kind::Ack, 40, Some(40)),
            seen(8, Kind::Ack, 41, Some(40)),
        ]);
        let exit = kept.exit.unwrap();
        assert_eq!((exit.time_ns, exit.cwnd, exit.reason), (6 * MS, 40, "ssthresh"));
        // One that is no larger than the initial window ends it before it begins. Seen with Linux
        // 6.18 (seed 4805 of `make twin-kept`): cwnd is 10 and ssthresh 9 from the handshake on.
        let small = |first, then| {
            let ack = |ms| seen(ms, Kind::Ack, 10, Some(then));
            track(&[seen(1, Kind::Begin, 10, Some(first)), ack(5), ack(6)]).exit.unwrap()
        };
        let exit = small(9, 9);
        assert_eq!((exit.time_ns, exit.cwnd, exit.reason), (MS, 10, "ssthresh"));
        assert_eq!(small(10, 10), exit);
        // That of a lost SYN is gone with the first acknowledgement.
        assert_eq!(small(7, 9).reason, "hystart");
        // HyStart may end it before, and a loss too.
        let ack = |ms, cwnd, ssthresh| seen(ms, Kind::Ack, cwnd, Some(ssthresh));
        let found = found(What::Something, 40_000, 45_001, ack(7, 31, 30));
        let hystart = track(&[ack(5, 10, 40), ack(6, 30, 40), found]).exit.unwrap();
        assert_eq!((hystart.cwnd, hystart.reason), (30, "delay"));
        let loss = Kind::Congestion { before: OPEN, after: RECOVERY };
        let lost = track(&[ack(5, 30, 40), seen(6, loss, 30, Some(21))]).exit.unwrap();
        assert_eq!((lost.cwnd, lost.reason), (30, "loss"));
    }

    #[test]
    fn hystart_is_shown_until_it_ends_slow_start() {
        let at = |ms, cwnd, ssthresh, what, round| {
            found(what, 40_000, round, seen(ms, Kind::Ack, cwnd, ssthresh))
        };
        // The state after each acknowledgement is seen at the next one.
        let track = track(&[
            at(5, 10, None, What::Nothing, 40_000),
            at(6, 12, None, What::Nothing, 41_000),
            at(7, 20, None, What::Nothing, 42_000),
            at(8, 30, Some(30), What::Something, 45_001),
            at(9, 31, Some(30), What::Something, 45_001),
        ]);
        let rows: Vec<_> = track.acks.iter().flatten().map(|row| row.hystart).collect();
        let shown = Hystart {
            round_min_rtt_us: Some(42_000),
            threshold_us: Some(45_000),
            samples: Some(8),
            ack_train_us: Some(9_000),
            ack_train_limit_us: Some(20_000),
            css: None,
        };
        // Below 16 segments no test is made.
        let small = Hystart { round_min_rtt_us: None, samples: None, ack_train_us: None, ..shown };
        let exit = Hystart { round_min_rtt_us: Some(45_001), ..shown };
        assert_eq!(rows, [Some(small), Some(shown), Some(exit), None]);
        assert_eq!(track.exit.unwrap().reason, "delay");
    }

    #[test]
    fn hystart_pp_is_shown_in_its_own_terms() {
        let at = |ms, css, what| {
            let ssthresh = (what != What::Nothing).then_some(30);
            let mut seen = found(what, 40_000, 45_000, seen(ms, Kind::Ack, 30, ssthresh));
            seen.found.round = seen.found.round.map(|round| Round { css: Some(css), ..round });
            seen
        };
        let css = What::Exit("css");
        let all = [(1, false, What::Nothing), (2, false, What::Nothing), (3, true, What::Nothing)];
        let ended = [(4, false, css), (5, false, css)];
        let all: Vec<_> =
            all.iter().chain(&ended).map(|&(ms, css, what)| at(ms, css, what)).collect();
        let track = track(&all);
        let rows: Vec<_> = track
            .acks
            .iter()
            .flatten()
            .map(|row| row.hystart.map(|shown| (shown.css, shown.threshold_us, shown.ack_train_us)))
            .collect();
        let (slow_start, css) =
            ((Some(false), Some(45_000), None), (Some(true), Some(40_000), None));
        assert_eq!(rows, [Some(slow_start), Some(css), Some((Some(false), None, None)), None]);
    }

    #[test]
    fn a_reduction_that_is_taken_back_is_an_undo() {
        let to = |before, after| Kind::Congestion { before, after };
        let reduced = [
            seen(1, Kind::Ack, 100, None),
            seen(2, to(OPEN, RECOVERY), 100, Some(70)),
            seen(4, Kind::Ack, 71, Some(70)),
        ];
        let lost = track(&[&reduced[..], &[seen(8, to(RECOVERY, OPEN), 70, Some(70))]].concat());
        assert_eq!(
            kinds(&lost),
            [(2, "slow_start_exit"), (2, "recovery_start"), (8, "recovery_end")]
        );
        assert_eq!((lost.exit.unwrap().reason, lost.undos), ("loss", 0));
        let spurious = track(&[&reduced[..], &[seen(8, to(RECOVERY, OPEN), 100, None)]].concat());
        assert_eq!((kinds(&spurious)[2], spurious.undos), ((8, "undo"), 1));
    }

    #[test]
    fn a_lost_syn_ends_no_slow_start() {
        let to = |before, after| Kind::Congestion { before, after };
        let track = track(&[
            seen(1000, to(OPEN, LOSS), 1, Some(7)),
            seen(1050, to(LOSS, OPEN), 1, Some(7)),
            seen(1050, Kind::Begin, 10, Some(7)),
            seen(1100, Kind::Ack, 10, None),
            seen(1101, Kind::Ack, 11, None),
            seen(1500, to(OPEN, RECOVERY), 20, Some(14)),
        ]);
        assert_eq!(
            kinds(&track),
            [(1050, "established"), (1500, "slow_start_exit"), (1500, "recovery_start")]
        );
        assert_eq!((track.timeouts, track.undos), (0, 0));
    }

    #[test]
    fn a_timeout_without_a_record_is_known_by_the_kernels_count() {
        let at = |ms, kind, timeouts| {
            let mut seen = seen(ms, kind, 10, Some(5));
            seen.state.timeouts = timeouts;
            seen
        };
        // The kernel counts a time-out after it has reported it.
        let loss = Kind::Congestion { before: OPEN, after: LOSS };
        let track = track(&[
            at(1, Kind::Begin, 1),
            at(5, Kind::Ack, 1),
            at(300, loss, 1),
            at(350, Kind::Ack, 2),
            at(900, Kind::Ack, 3),
            at(950, Kind::End, 3),
        ]);
        assert_eq!(track.timeouts, 2);
        let of_timeouts: Vec<_> =
            kinds(&track).into_iter().filter(|(_, kind)| kind.ends_with("timeout")).collect();
        assert_eq!(of_timeouts, [(300, "retransmission_timeout"), (900, "retransmission_timeout")]);
    }

    #[test]
    fn every_timeout_counts_also_between_two_looks() {
        let again = Kind::Congestion { before: LOSS, after: LOSS };
        let begun = seen(1, Kind::Ack, 10, None);
        assert_eq!(track(&[begun.clone(), seen(2, again, 1, Some(5))]).timeouts, 1);
        let reading = |timeouts, congestion_state, ms| {
            let mut reading = seen(ms, Kind::Poll, 10, Some(5));
            (reading.state.timeouts, reading.state.congestion_state) = (timeouts, congestion_state);
            reading
        };
        let polled = track(&[reading(0, OPEN, 1), reading(2, LOSS, 5), reading(2, OPEN, 9)]);
        assert_eq!(polled.timeouts, 2);
        assert_eq!(kinds(&polled)[3], (9, "recovery_end"));
    }
}
