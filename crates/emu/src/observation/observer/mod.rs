//! Observes the kernel's TCP senders during a run.
//!
//! With BPF every acknowledgement, change of state and retransmission is seen. Without it each
//! socket's TCP_INFO is read every few milliseconds. A separate thread does either; the forwarder
//! is not involved. [`Observed::complete`] puts the observations into the tables.

#[cfg(feature = "bpf")]
mod bpf;
mod diag;
mod hystart;
mod observed;
mod rows;
mod track;

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter};
use std::net::IpAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use airpath_base::Duration;
use airpath_scenario::ObserverKind;
use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;

use self::diag::Sockets;
use self::observed::Observation;
use self::track::Track;
use crate::EmuError;
use crate::clock::{monotonic, timespec};
use crate::host::namespace::Namespace;
use crate::observation::live::Windows;

pub(crate) use observed::{congestion_name, know_congestion};
pub(crate) use rows::Run;
pub(crate) use track::Keep;

/// Ends all connections of a namespace that is no longer needed.
///
/// # Errors
///
/// If the kernel does not support or permit it.
pub(crate) fn abort_connections(namespace: &Namespace) -> Result<(), EmuError> {
    let abort = || Sockets::new(0)?.abort_all();
    namespace.within(abort)?.map_err(|source| EmuError::Diag { source })
}

/// Most ends of connections that are kept at a time.
const MOST_SOCKETS: usize = 2048;

/// Ends that have been silent for longer can be forgotten, if there are too many.
const SILENT: Duration = Duration::from_secs(10);

/// Interval at which a live view is updated.
const SHOW: Duration = Duration::from_millis(100);

/// Interval at which BPF's records are fetched.
#[cfg(feature = "bpf")]
const FETCH: Duration = Duration::from_millis(20);

/// How a run's senders were observed, for the provenance.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObserverReport {
    /// The method: bpf, poll or none.
    pub by: &'static str,
    /// Why BPF was not used, although nothing else was requested.
    pub because: Option<String>,
    /// Time between two reads of TCP_INFO in milliseconds; null for BPF.
    pub poll_ms: Option<f64>,
    /// Number of reads of TCP_INFO, or of BPF records.
    pub records: u64,
    /// Records lost for lack of room: if there are any, rows are missing.
    pub lost_records: u64,
    /// Ends of connections that were seen.
    pub sockets: u64,
    /// Ends whose flow the model does not know.
    pub unmatched_sockets: u64,
    /// Ends that were forgotten because there were too many: their windows and events are not in
    /// the tables.
    pub forgotten_sockets: u64,
    /// Records of ends for which there was no room because so many others were open.
    pub crowded_records: u64,
}

impl ObserverReport {
    /// The report before the first record.
    pub(crate) const fn new(by: &'static str, because: Option<String>) -> Self {
        Self {
            by,
            because,
            poll_ms: None,
            records: 0,
            lost_records: 0,
            sockets: 0,
            unmatched_sockets: 0,
            forgotten_sockets: 0,
            crowded_records: 0,
        }
    }
}

/// Where observations are shown.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) windows: Windows,
    /// Ends of UEs by address.
    pub(crate) addresses: BTreeMap<IpAddr, usize>,
}

/// The observing thread.
pub(crate) struct SenderObserver {
    /// Dropping it stops the thread.
    stop: Option<PipeWriter>,
    thread: Option<Thread>,
}

/// The observations of a run.
pub(crate) struct Observed {
    report: ObserverReport,
    keep: Keep,
    tracks: BTreeMap<Socket, Track>,
    shown: Option<Shown>,
    /// CLOCK_MONOTONIC in nanoseconds.
    shown_ns: u64,
    /// Nothing can be forgotten before this time.
    full_until_ns: u64,
    /// What ended the observation before the run ended.
    failed: Option<String>,
}

/// An end of a connection: index of its namespace, and its cookie.
type Socket = (usize, u64);

impl SenderObserver {
    /// Begins to observe, and keeps as much as `keep` says.
    ///
    /// # Errors
    ///
    /// If BPF is requested and refused, or the sockets cannot be queried.
    pub(crate) fn start(
        wanted: ObserverKind,
        poll: Duration,
        keep: Keep,
        shown: Option<Shown>,
        ends: &[&Namespace],
    ) -> Result<Self, EmuError> {
        let (stopped, stop) = io::pipe().map_err(EmuError::Wait)?;
        let observed = move |by, because| Observed::new(by, because, keep, shown.clone());
        let thread = match wanted {
            ObserverKind::None => spawn(move |ready| {
                let _ = ready.send(Ok(()));
                observed("none", None)
            }),
            ObserverKind::Bpf => by_bpf(stopped, observed("bpf", None), ends),
            ObserverKind::Poll => by_polling(stopped, observed("poll", None), poll, ends),
            ObserverKind::Auto => match by_bpf(
                stopped.try_clone().map_err(EmuError::Wait)?,
                observed("bpf", None),
                ends,
            ) {
                Err(EmuError::Bpf { said }) => {
                    by_polling(stopped, observed("poll", Some(said)), poll, ends)
                }
                begun => begun,
            },
        };
        Ok(Self { stop: Some(stop), thread: Some(thread?) })
    }

    /// Ends the observation: returns what was seen, and why it is incomplete.
    pub(crate) fn finish(mut self) -> (Observed, Option<String>) {
        drop(self.stop.take());
        let thread = self.thread.take().expect("only `finish` and `drop` take it");
        let panicked = |_| Observed {
            failed: Some("the observer stopped, which is a bug".to_owned()),
            ..Observed::new("none", None, Keep::for_samples(Duration::from_secs(1), false), None)
        };
        let observed = thread.join().unwrap_or_else(panicked);
        let failed = observed.failed.as_ref().map(|said| {
            format!("the senders' windows and events are missing after some time: {said}")
        });
        (observed, failed)
    }
}

impl Drop for SenderObserver {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

type Thread = JoinHandle<Observed>;

/// Starts the thread, and waits until it is ready.
fn spawn(
    work: impl FnOnce(Sender<Result<(), EmuError>>) -> Observed + Send + 'static,
) -> Result<Thread, EmuError> {
    let (ready, is_ready) = channel();
    let builder = thread::Builder::new().name("airpath-observe".to_owned());
    let thread = builder.spawn(move || work(ready)).map_err(EmuError::Wait)?;
    // A thread that panicked reports nothing: `finish` notices.
    is_ready.recv().unwrap_or(Ok(()))?;
    Ok(thread)
}

#[cfg(feature = "bpf")]
fn by_bpf(
    stopped: PipeReader,
    mut observed: Observed,
    ends: &[&Namespace],
) -> Result<Thread, EmuError> {
    let networks = ends.iter().map(|end| end.inode()).collect::<Result<Vec<_>, _>>()?;
    spawn(move |ready| {
        let mut bpf = match bpf::Bpf::new(&networks) {
            Ok(bpf) => bpf,
            Err(error) => {
                let _ = ready.send(Err(error));
                return observed;
            }
        };
        let _ = ready.send(Ok(()));
        let done = until_over(&stopped, FETCH, || {
            bpf.take()?.for_each(|seen| observed.note(&seen));
            observed.show();
            Ok(())
        });
        observed.report.lost_records = bpf.lost();
        observed.end(done)
    })
}

#[cfg(not(feature = "bpf"))]
fn by_bpf(_: PipeReader, _: Observed, _: &[&Namespace]) -> Result<Thread, EmuError> {
    Err(EmuError::Bpf { said: crate::error::BPF_NOT_BUILT.to_owned() })
}

fn by_polling(
    stopped: PipeReader,
    mut observed: Observed,
    interval: Duration,
    ends: &[&Namespace],
) -> Result<Thread, EmuError> {
    let sockets = ends.iter().enumerate().map(|(end, namespace)| {
        namespace.within(|| Sockets::new(end))?.map_err(|source| EmuError::Diag { source })
    });
    let mut sockets = sockets.collect::<Result<Vec<_>, EmuError>>()?;
    observed.report.poll_ms = Some(interval.as_millis_f64());
    spawn(move |ready| {
        let _ = ready.send(Ok(()));
        let done = until_over(&stopped, interval, || {
            for sockets in &mut sockets {
                let polled = sockets.poll_kernel(&mut |seen| observed.note(seen));
                polled.map_err(|source| EmuError::Diag { source })?;
            }
            observed.show();
            Ok(())
        });
        observed.end(done)
    })
}

/// Observes repeatedly, for the last time when it must stop.
fn until_over(
    stopped: &PipeReader,
    interval: Duration,
    mut poll_once: impl FnMut() -> Result<(), EmuError>,
) -> Result<(), EmuError> {
    loop {
        let last = is_over(stopped, interval)?;
        poll_once()?;
        if last {
            return Ok(());
        }
    }
}

/// Waits; returns whether it must stop.
fn is_over(stopped: &PipeReader, interval: Duration) -> Result<bool, EmuError> {
    let mut wanted = [PollFd::new(stopped, PollFlags::IN)];
    match poll(&mut wanted, Some(&timespec(interval))) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(!wanted[0].revents().is_empty()),
        Err(error) => Err(EmuError::Wait(error.into())),
    }
}

impl Observed {
    fn new(by: &'static str, because: Option<String>, keep: Keep, shown: Option<Shown>) -> Self {
        Self {
            report: ObserverReport::new(by, because),
            keep,
            tracks: BTreeMap::new(),
            shown,
            shown_ns: 0,
            full_until_ns: 0,
            failed: None,
        }
    }

    /// The observation has ended or failed.
    fn end(mut self, done: Result<(), EmuError>) -> Self {
        self.failed = done.err().map(|error| error.to_string());
        self
    }

    fn note(&mut self, seen: &Observation) {
        self.report.records += 1;
        let socket = (seen.end, seen.cookie);
        if self.tracks.len() >= MOST_SOCKETS && !self.tracks.contains_key(&socket) {
            if seen.time_ns >= self.full_until_ns {
                self.forget(seen.time_ns);
            }
            if self.tracks.len() >= MOST_SOCKETS {
                self.report.crowded_records += 1;
                return;
            }
        }
        let track = self.tracks.entry(socket).or_insert_with(|| Track::new(seen, self.keep));
        track.note(seen);
    }

    /// Makes room, up to a half: forgets ends that are closed or silent, first those that sent
    /// least.
    fn forget(&mut self, now_ns: u64) {
        let is_over = |track: &Track| track.ended || now_ns > track.last_ns + SILENT.as_nanos();
        let over = self.tracks.iter().filter(|(_, track)| is_over(track));
        let mut over: Vec<(u64, Socket)> =
            over.map(|(&socket, track)| (track.last.acked_bytes, socket)).collect();
        over.sort_unstable();
        over.truncate(MOST_SOCKETS / 2);
        for (_, socket) in &over {
            self.tracks.remove(socket);
        }
        self.report.forgotten_sockets += over.len() as u64;
        self.full_until_ns = now_ns + SHOW.as_nanos();
    }

    /// Updates a live view from time to time.
    fn show(&mut self) {
        let Some(shown) = &self.shown else { return };
        let now_ns = monotonic();
        if now_ns < self.shown_ns + SHOW.as_nanos() {
            return;
        }
        self.shown_ns = now_ns;
        shown.windows.set(self.tracks.values().filter_map(|track| {
            let sender = (track.key(&shown.addresses)?, track.first.end == 0);
            Some((sender, track.last.cwnd))
        }));
    }
}

/// Reads an answer of the kernel and notes its content.
#[cfg(any(test, fuzzing))]
pub(crate) fn note_answer(answer: &[u8]) {
    let mut found = Vec::new();
    diag::read(answer, 1, 1_000_000_000, &mut found);
    let keep = Keep { acks: true, spacing_ns: 1_000_000 };
    let mut observed = Observed::new("tcp_info", None, keep, None);
    for (time_ns, (_, seen)) in (1_000_000_000..).step_by(500_000).zip(found) {
        observed.note(&Observation { time_ns, ..seen });
    }
    assert!(observed.tracks.values().all(|track| track.points.is_sorted_by_key(|at| at.time_ns)));
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::observed::{Found, Kind, State};
    use super::*;

    fn seen(cookie: u64, kind: Kind, ms: u64, acked_bytes: u64) -> Observation {
        Observation {
            time_ns: ms * 1_000_000,
            end: 0,
            cookie,
            kind,
            v6: false,
            local_port: 1,
            remote_port: 2,
            remote: Ipv4Addr::LOCALHOST.into(),
            congestion: "cubic",
            state: State { acked_bytes, ..State::default() },
            found: Found::default(),
        }
    }

    #[test]
    fn of_many_sockets_those_stay_that_are_open_or_sent_most() {
        let keep = Keep::for_samples(Duration::from_millis(100), false);
        let mut observed = Observed::new("bpf", None, keep, None);
        observed.note(&seen(0, Kind::Begin, 0, 1_000_000));
        observed.note(&seen(0, Kind::End, 0, 1_000_000));
        observed.note(&seen(1, Kind::Begin, 0, 0));
        for cookie in 2..100_000 {
            observed.note(&seen(cookie, Kind::Begin, cookie / 10, 0));
            observed.note(&seen(cookie, Kind::End, cookie / 10, 0));
            observed.note(&seen(1, Kind::Ack, cookie / 10, 0));
        }
        assert!(observed.tracks.len() <= MOST_SOCKETS);
        assert!(observed.tracks.contains_key(&(0, 0)) && observed.tracks.contains_key(&(0, 1)));
        let ObserverReport { forgotten_sockets, crowded_records, .. } = observed.report;
        assert!(forgotten_sockets > 90_000 && crowded_records < 10_000, "{crowded_records}");
    }

    #[test]
    fn an_observer_that_fails_keeps_what_it_saw_and_says_why() {
        let keep = Keep::for_samples(Duration::from_millis(100), false);
        let (stopped, stop) = io::pipe().unwrap();
        let mut observed = Observed::new("poll", None, keep, None);
        let thread = spawn(move |ready| {
            let _ = ready.send(Ok(()));
            let done = until_over(&stopped, Duration::from_millis(1), || {
                observed.note(&seen(1, Kind::Begin, 1, 0));
                Err(EmuError::Diag { source: io::ErrorKind::BrokenPipe.into() })
            });
            observed.end(done)
        });
        let observer = SenderObserver { stop: Some(stop), thread: Some(thread.unwrap()) };
        let (observed, failed) = observer.finish();
        assert_eq!(observed.report.records, 1);
        assert!(failed.is_some_and(|said| said.contains("broken pipe")));
    }

    #[test]
    fn an_observer_that_panics_is_no_reason_to_lose_the_run() {
        let (_, stop) = io::pipe().unwrap();
        let thread = spawn(|ready| {
            let _ = ready.send(Ok(()));
            panic!("this test's")
        });
        let observer = SenderObserver { stop: Some(stop), thread: Some(thread.unwrap()) };
        assert!(observer.finish().1.is_some_and(|said| said.contains("bug")));
    }

    #[test]
    fn with_too_many_open_sockets_new_ones_are_not_watched_and_that_is_counted() {
        let keep = Keep::for_samples(Duration::from_millis(100), false);
        let mut observed = Observed::new("bpf", None, keep, None);
        for cookie in 0..=MOST_SOCKETS as u64 {
            observed.note(&seen(cookie, Kind::Begin, 1, 0));
        }
        assert_eq!((observed.tracks.len(), observed.report.crowded_records), (MOST_SOCKETS, 1));
    }
}
