//! CoDel (RFC 8289), as a decision about each packet at the head of the queue.

use airpath_base::{Duration, Instant};

/// Below this backlog there is no standing queue (RFC 8289 4.4: one maximum-size packet).
const MAX_PACKET: u64 = 1500;

/// State of one CoDel queue; names follow RFC 8289 5.
#[derive(Clone, Debug)]
pub struct CoDel {
    target: Duration,
    interval: Duration,
    first_above_time: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    count: u32,
    last_count: u32,
    previous: Previous,
}

/// What happened to the previous packet within the same dequeue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Previous {
    /// It was sent: this is a new dequeue.
    Sent,
    /// It was dropped on entering the dropping state: this one is sent whatever its sojourn time.
    DroppedOnEntry,
    /// It was dropped within the dropping state.
    Dropped,
}

impl CoDel {
    /// A CoDel that drops once the queue has been above `target` for an `interval`.
    pub fn new(target: Duration, interval: Duration) -> Self {
        Self {
            target,
            interval,
            first_above_time: None,
            dropping: false,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            previous: Previous::Sent,
        }
    }

    /// The packet at the head, `sojourn` old, is about to be sent at `now` and leaves `backlog`
    /// bytes behind. Returns true if it is to be dropped; then ask about the next one.
    pub fn drops_head(&mut self, now: Instant, sojourn: Duration, backlog: u64) -> bool {
        let ok_to_drop = self.ok_to_drop(now, sojourn, backlog);
        match std::mem::replace(&mut self.previous, Previous::Sent) {
            Previous::DroppedOnEntry => return false,
            Previous::Dropped if ok_to_drop => self.drop_next = self.control_law(self.drop_next),
            Previous::Dropped | Previous::Sent => {}
        }
        if self.dropping {
            self.dropping = ok_to_drop;
            if ok_to_drop && now >= self.drop_next {
                self.count += 1;
                self.previous = Previous::Dropped;
            }
        } else if ok_to_drop {
            self.enter_dropping(now);
            self.previous = Previous::DroppedOnEntry;
        }
        self.previous != Previous::Sent
    }

    /// The queue ran empty.
    #[inline]
    pub fn emptied(&mut self) {
        self.first_above_time = None;
        self.dropping &= self.previous == Previous::DroppedOnEntry;
        self.previous = Previous::Sent;
    }

    /// The packet that [`CoDel::drops_head`] wanted to drop was marked and sent instead (RFC 8290
    /// 4.2): this counts as the drop, and ends the dequeue.
    pub fn marked_instead(&mut self) {
        if self.previous == Previous::Dropped {
            self.drop_next = self.control_law(self.drop_next);
        }
        self.previous = Previous::Sent;
    }

    // RFC 8289 5.5, dodequeue.
    fn ok_to_drop(&mut self, now: Instant, sojourn: Duration, backlog: u64) -> bool {
        if sojourn < self.target || backlog <= MAX_PACKET {
            self.first_above_time = None;
            return false;
        }
        let first_above = *self.first_above_time.get_or_insert(now + self.interval);
        now >= first_above
    }

    // RFC 8289 5.4: if the last dropping state was recent, the control law starts near where it
    // left off.
    fn enter_dropping(&mut self, now: Instant) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.last_count);
        let recent = now.saturating_since(self.drop_next) < self.interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.control_law(now);
        self.last_count = self.count;
    }

    // RFC 8289 5.6.
    fn control_law(&self, from: Instant) -> Instant {
        let step = self.interval.as_secs_f64() / f64::from(self.count).sqrt();
        from + Duration::from_secs_f64(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Duration = Duration::from_millis(5);
    const INTERVAL: Duration = Duration::from_millis(100);

    /// Passes one packet per ms with this sojourn time; returns the times of drops in ms.
    fn drops(codel: &mut CoDel, from_ms: u64, to_ms: u64, sojourn_ms: u64) -> Vec<u64> {
        let mut dropped = Vec::new();
        for ms in from_ms..to_ms {
            let now = Instant::ZERO + Duration::from_millis(ms);
            while codel.drops_head(now, Duration::from_millis(sojourn_ms), 100_000) {
                dropped.push(ms);
            }
        }
        dropped
    }

    #[test]
    fn drops_after_an_interval_above_target_and_then_ever_faster() {
        // The first drop is one interval after the queue begins to stand; then they are 100/sqrt(n)
        // ms apart.
        let mut codel = CoDel::new(TARGET, INTERVAL);
        assert_eq!(drops(&mut codel, 0, 500, 20), [100, 200, 271, 329, 379, 424, 464]);
    }

    #[test]
    fn never_drops_below_target_or_with_one_packet_left() {
        let mut codel = CoDel::new(TARGET, INTERVAL);
        assert!(drops(&mut codel, 0, 1000, 4).is_empty());
        for ms in 0..1000 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            assert!(!codel.drops_head(now, INTERVAL, 1500));
        }
    }

    #[test]
    fn a_mark_counts_as_the_drop() {
        let mut codel = CoDel::new(TARGET, INTERVAL);
        let mut marked = Vec::new();
        for ms in 0..300 {
            let now = Instant::ZERO + Duration::from_millis(ms);
            if codel.drops_head(now, Duration::from_millis(20), 100_000) {
                codel.marked_instead();
                marked.push((ms, codel.drop_next.as_nanos() / 1_000_000));
            }
        }
        // With the time of the next one, which is known at once.
        assert_eq!(marked, [(100, 200), (200, 270), (271, 328)]);
    }

    #[test]
    fn one_good_packet_ends_dropping() {
        let mut codel = CoDel::new(TARGET, INTERVAL);
        assert_eq!(drops(&mut codel, 0, 150, 20), [100]);
        assert!(drops(&mut codel, 150, 151, 1).is_empty());
        assert_eq!(drops(&mut codel, 151, 260, 20), [251]);
    }
}
