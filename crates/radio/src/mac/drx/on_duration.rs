//! drx-onDurationTimer: its starts are computed from the frame number, not counted.

use airpath_base::{Duration, Instant};

use super::DrxConfig;
use crate::mac::Occasions;

/// Which cycle is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cycle {
    Long,
    Short,
}

/// The timer and its starts.
#[derive(Clone, Debug)]
pub(super) struct OnDuration {
    long: Occasions,
    /// Starts of the short cycle; those of the long cycle if no short one is configured.
    short: Occasions,
    slot_offset: Duration,
    length: Duration,
    /// The timer runs until this time; if that has passed, it does not run.
    runs_until: Instant,
    /// A start whose subframe has begun while drx-SlotOffset has not elapsed yet.
    pending: Option<Instant>,
    /// The next subframe that fulfils the formula of this cycle.
    next: (Cycle, Instant),
}

impl OnDuration {
    pub(super) fn new(config: &DrxConfig) -> Self {
        let long = Occasions::new(config.long_cycle, config.start_offset);
        // TS 38.321 5.7: (drx-StartOffset) modulo (drx-ShortCycle)
        let short = config
            .short_cycle
            .map_or(long, |short| Occasions::new(short.cycle, config.start_offset));
        Self {
            long,
            short,
            slot_offset: config.slot_offset,
            length: config.on_duration,
            runs_until: Instant::ZERO,
            pending: None,
            next: (Cycle::Long, long.at_or_after(Instant::ZERO)),
        }
    }

    /// Processes `[from, until)`, during which `cycle` is in use. Returns how long the timer ran.
    /// The cost does not depend on the number of cycles.
    pub(super) fn advance(&mut self, cycle: Cycle, from: Instant, until: Instant) -> Duration {
        let mut count = Count { from, ran: Duration::ZERO };
        if let Some(start) = self.pending
            && start < until
        {
            self.pending = None;
            self.start(&mut count, start);
        }
        let first = self.next_subframe(cycle, from);
        if first < until {
            self.start_each(&mut count, cycle, first, until);
        }
        count.ran + self.runs_until.min(until).saturating_since(count.from)
    }

    /// Whether the timer runs at `now`, up to which `advance` has been called.
    pub(super) fn is_running(&self, cycle: Cycle, now: Instant) -> bool {
        self.runs_until > now
            || self.pending == Some(now)
            || self.last_start(cycle, now, now) == Some(now)
    }

    /// When everything that has begun by `time` ends, without subframes that begin at `now` or
    /// later.
    pub(super) fn runs_until(&self, time: Instant) -> Instant {
        match self.pending.filter(|&start| start <= time) {
            Some(start) => start + self.length,
            None => self.runs_until,
        }
    }

    pub(super) fn stop(&mut self, now: Instant) {
        self.runs_until = self.runs_until.min(now);
    }

    /// A start that is due because its subframe has begun.
    pub(super) fn pending(&self) -> Option<Instant> {
        self.pending
    }

    /// The first start whose subframe begins in `[from, until)`.
    pub(super) fn first_start(
        &self,
        cycle: Cycle,
        from: Instant,
        until: Option<Instant>,
    ) -> Option<Instant> {
        let subframe = self.occasions(cycle).at_or_after(from);
        until.is_none_or(|until| subframe < until).then(|| subframe + self.slot_offset)
    }

    /// The last start not after `time` whose subframe does not begin before `from`.
    pub(super) fn last_start(&self, cycle: Cycle, from: Instant, time: Instant) -> Option<Instant> {
        let after = Instant::from_nanos(time.as_nanos().saturating_add(1));
        let subframe = self.occasions(cycle).before(after.checked_sub(self.slot_offset)?)?;
        (subframe >= from).then(|| subframe + self.slot_offset)
    }

    fn start_each(&mut self, count: &mut Count, cycle: Cycle, first: Instant, until: Instant) {
        let occasions = *self.occasions(cycle);
        let mut last = occasions.before(until).unwrap_or(first);
        self.next = (cycle, occasions.at_or_after(until));
        if last + self.slot_offset >= until {
            self.pending = Some(last + self.slot_offset);
            match occasions.before(last).filter(|&before| before >= first) {
                Some(before) => last = before,
                None => return,
            }
        }
        self.start(count, first + self.slot_offset);
        count.ran += Duration::from_nanos(occasions.covered(first, last, self.length));
        count.from = last + self.slot_offset;
        self.runs_until = count.from + self.length;
    }

    /// Starts or restarts the timer, counting how long it has run before.
    fn start(&mut self, count: &mut Count, at: Instant) {
        count.ran += self.runs_until.min(at).saturating_since(count.from);
        count.from = at;
        self.runs_until = at + self.length;
    }

    fn next_subframe(&mut self, cycle: Cycle, from: Instant) -> Instant {
        if self.next.0 != cycle {
            self.next = (cycle, self.occasions(cycle).at_or_after(from));
        }
        self.next.1
    }

    fn occasions(&self, cycle: Cycle) -> &Occasions {
        match cycle {
            Cycle::Long => &self.long,
            Cycle::Short => &self.short,
        }
    }
}

/// How long the timer ran before `from`.
struct Count {
    from: Instant,
    ran: Duration,
}
