//! drx-RetransmissionTimer of every HARQ process, as the window in which it would run.

use airpath_base::Instant;

use crate::mac::earliest;

/// One window per HARQ process of one direction.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    windows: Vec<Option<Window>>,
    /// No window ends later than this.
    latest_end: Instant,
}

/// The window `[start, end)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) start: Instant,
    pub(super) end: Instant,
}

impl Window {
    pub(super) fn contains(&self, time: Instant) -> bool {
        self.start <= time && time < self.end
    }
}

impl Windows {
    pub(super) fn new(processes: u8) -> Self {
        Self { windows: vec![None; usize::from(processes)], latest_end: Instant::ZERO }
    }

    /// Replaces the window of `process`.
    pub(super) fn set(&mut self, process: u8, window: Window) {
        self.latest_end = self.latest_end.max(window.end);
        self.windows[usize::from(process)] = Some(window);
    }

    pub(super) fn clear(&mut self, process: u8) {
        self.windows[usize::from(process)] = None;
    }

    /// The latest end of the windows that contain `time`.
    pub(super) fn runs_until(&self, time: Instant) -> Option<Instant> {
        if time >= self.latest_end {
            return None;
        }
        let running = self.windows.iter().flatten().filter(|window| window.contains(time));
        running.map(|window| window.end).max()
    }

    /// The earliest start after `time`.
    pub(super) fn next_start(&self, time: Instant) -> Option<Instant> {
        if time >= self.latest_end {
            return None;
        }
        let later = self.windows.iter().flatten().filter(|window| window.start > time);
        later.filter(|window| window.start < window.end).map(|window| window.start).min()
    }
}

/// The windows of the downlink and the uplink.
#[derive(Clone, Debug)]
pub(super) struct BothWindows {
    pub(super) downlink: Windows,
    pub(super) uplink: Windows,
}

impl BothWindows {
    pub(super) fn runs_until(&self, time: Instant) -> Option<Instant> {
        // `None` is less than any time.
        self.downlink.runs_until(time).max(self.uplink.runs_until(time))
    }

    pub(super) fn next_start(&self, time: Instant) -> Option<Instant> {
        earliest(self.downlink.next_start(time), self.uplink.next_start(time))
    }
}
