//! A TCP transfer: who opens it, who writes, who reads, and the state of the sender's socket.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as StdDuration;

use airpath_base::{Duration, Instant};
use airpath_record::{Exit, LimitSeconds};
use airpath_scenario::{FlowConfig, TcpConfig, Traffic};
use airpath_tcp::ReaderConfig;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendFlags, Shutdown, SocketFlags, accept_with, connect, listen, recv, send,
    shutdown, sockopt,
};

use super::options::{Asked, SocketState, socket};
use super::pace::{Pace, Woken};
use super::{End, Failure, Job, Opened, start_of};
use crate::host::counters::{counters, waited_to_run};
use crate::sys::{TcpInfo, send_queue, tcp_info};

/// Written at once; more would hold the socket for longer.
static CHUNK: [u8; 1 << 16] = [0; 1 << 16];

/// Most bytes read at once.
const READ_BYTES: usize = 1 << 20;

/// Interval at which the sender's socket is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Acknowledgements of one burst are at most this far apart: the kernel takes some 6 us for each.
const BETWEEN_ACKS: Duration = Duration::from_micros(40);

/// Time before the start of its flow at which a sender prepares.
const BEFORE_START: Duration = Duration::from_millis(2);

/// ssthresh before the first congestion (TCP_INFINITE_SSTHRESH).
const NO_SSTHRESH: u32 = 0x7fff_ffff;

/// TCP_CA_CWR of `tcpi_ca_state`: this state and later ones follow a loss or a mark.
const CWR: u8 = 2;

/// The state of a sender's socket, and the first state of both ends.
#[derive(Clone, Default, Debug)]
pub(crate) struct SenderState {
    /// The window when it was last polled.
    pub(crate) window: Option<SenderWindow>,
    /// The first end of slow start.
    pub(crate) exit: Option<Exit>,
    /// Bytes written by the application.
    pub(crate) written: u64,
    /// States of the sender's and of the receiver's connection.
    pub(crate) sockets: [Option<SocketState>; 2],
    /// How long each limit held the sender back, as the kernel counted it.
    pub(crate) limited: Option<LimitSeconds>,
    /// How long the writing and the reading thread were ready to run without running.
    pub(crate) waited: [Option<Duration>; 2],
}

/// A sender's windows at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct SenderWindow {
    pub(crate) cwnd_segments: u32,
    /// Slow start threshold; `None` before the first congestion.
    pub(crate) ssthresh_segments: Option<u32>,
    pub(crate) srtt_ms: f64,
    /// Segments in flight (RFC 6675 pipe), as counted by the kernel.
    pub(crate) inflight_segments: u32,
    /// The peer's receive window as last advertised, in whole segments; 0 before Linux 5.4.
    pub(crate) receive_window_segments: Option<u32>,
}

/// How an end gets its connection.
enum Opening {
    /// Connects to the other end.
    Connects(SocketAddrV4),
    /// Accepts the first connection.
    Listens,
}

/// Opens both ends.
pub(super) fn open(
    flow: &FlowConfig,
    tcp: &TcpConfig,
    sender: End<'_>,
    receiver: End<'_>,
    state: &Arc<Mutex<SenderState>>,
) -> Opened<Vec<Job>> {
    let start = start_of(flow);
    let (writes, of_sender) = socket(&flow.id, sender, &tcp.sender)?;
    let (reads, of_receiver) = socket(&flow.id, receiver, &tcp.receiver)?;
    let (sends, receives) = if tcp.sender_opens {
        listen(&reads, 1).map_err(|error| ("listen", error.into()))?;
        (Opening::Connects(receiver.address), Opening::Listens)
    } else {
        listen(&writes, 1).map_err(|error| ("listen", error.into()))?;
        (Opening::Listens, Opening::Connects(sender.address))
    };
    let work = match &flow.traffic {
        Traffic::Bulk { duration, write, .. } => {
            let stop = duration.map(|duration| start + duration);
            Work { stop, write: *write, ..Work::default() }
        }
        Traffic::File { size, writes, .. } => {
            let writes = writes.iter().map(|&after| start + after).collect();
            Work { size: Some(*size), writes, ..Work::default() }
        }
        Traffic::Ping { .. } | Traffic::Udp { .. } | Traffic::Quic { .. } => Work::default(),
    };
    let (state, other) = (Arc::clone(state), Arc::clone(state));
    let write = move |pace: &Pace| {
        // Reading the counters takes time: after the handshake the first data would be late.
        if let Some(ready) = start.checked_sub(BEFORE_START)
            && !pace.until(ready).map_err(|error| Failure::Step("waiting", error))?
        {
            return Ok(());
        }
        let hystart = HyStart::count();
        let Some(socket) = sends.connection(writes, start, pace)? else { return Ok(()) };
        end_at_once(&socket);
        note(&state, SENDER, of_sender.on(&socket)?);
        let done = Sender::new(socket, Arc::clone(&state), start, pace, hystart).run(&work);
        note_wait(&state, SENDER);
        done
    };
    let reader = tcp.receiver.reader;
    let read = move |pace: &Pace| {
        let Some(socket) = receives.connection(reads, start, pace)? else { return Ok(()) };
        end_at_once(&socket);
        note(&other, RECEIVER, of_receiver.on(&socket)?);
        let done = receive(&socket, reader, &of_receiver, pace);
        note_wait(&other, RECEIVER);
        done
    };
    Ok(vec![Job::new(flow, sender, true, write)?, Job::new(flow, receiver, true, read)?])
}

/// Index in [`SenderState::sockets`].
const SENDER: usize = 0;
const RECEIVER: usize = 1;

fn note(state: &Mutex<SenderState>, end: usize, socket: SocketState) {
    state.lock().unwrap_or_else(PoisonError::into_inner).sockets[end] = Some(socket);
}

/// Notes how long the calling thread, which has done its work, waited for a processor.
fn note_wait(state: &Mutex<SenderState>, end: usize) {
    state.lock().unwrap_or_else(PoisonError::into_inner).waited[end] = waited_to_run();
}

/// Ends a connection without a farewell when its socket is closed. The network ends with the run,
/// and if airpath is killed, with it: otherwise the kernel would keep what is still in the buffer,
/// with the congestion control, until it gives up after a minute.
fn end_at_once(socket: &OwnedFd) {
    let _ = sockopt::set_socket_linger(socket, Some(StdDuration::ZERO));
}

impl Opening {
    /// The connection, from `start` on; `None` if the run was over before.
    fn connection(
        self,
        socket: OwnedFd,
        start: Instant,
        pace: &Pace,
    ) -> Result<Option<OwnedFd>, Failure> {
        let failed = |step| move |error: io::Error| Failure::Step(step, error);
        let Self::Connects(to) = self else {
            while pace.ready(&socket, PollFlags::IN, None).map_err(failed("waiting"))?
                == Woken::Ready
            {
                match accept_with(&socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                    Ok(connection) => return Ok(Some(connection)),
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(error) => return Err(Failure::Step("accepting", error.into())),
                }
            }
            return Ok(None);
        };
        if !pace.punctually(start).map_err(failed("waiting"))? {
            return Ok(None);
        }
        match connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(Failure::Step("connecting", error.into())),
        }
        let woken = pace.ready(&socket, PollFlags::OUT, None).map_err(failed("waiting"))?;
        if woken == Woken::Over {
            return Ok(None);
        }
        match sockopt::socket_error(&socket) {
            Ok(Ok(())) => Ok(Some(socket)),
            Ok(Err(error)) | Err(error) => Err(Failure::Step("connecting", error.into())),
        }
    }
}

/// What the application writes.
#[derive(Default)]
struct Work {
    /// When it stops, except for the rest of a write of this many bytes.
    stop: Option<Instant>,
    write: Option<u64>,
    /// Number of bytes to write.
    size: Option<u64>,
    /// Times at which an equal part is written, the last with the remainder; empty: everything at
    /// once.
    writes: Vec<Instant>,
}

impl Work {
    /// Bytes that may have been written by `now`, and when that number grows.
    fn due(&self, now: Instant) -> (u64, Option<Instant>) {
        let size = self.size.unwrap_or(u64::MAX);
        let begun = self.writes.partition_point(|&at| at <= now);
        match self.writes.get(begun) {
            None => (size, None),
            Some(&next) => (size / self.writes.len() as u64 * begun as u64, Some(next)),
        }
    }
}

struct Sender<'a> {
    socket: OwnedFd,
    state: Arc<Mutex<SenderState>>,
    start: Instant,
    pace: &'a Pace,
    written: u64,
    /// When the socket was last polled, and its state then.
    polled_at: Instant,
    last: Option<SenderWindow>,
    exited: bool,
    hystart: HyStart,
}

/// Slow starts ended by HyStart, as counted in the namespace.
#[derive(Clone, Copy, Default)]
struct HyStart {
    train_exits: u64,
    delay_exits: u64,
}

impl<'a> Sender<'a> {
    fn new(
        socket: OwnedFd,
        state: Arc<Mutex<SenderState>>,
        start: Instant,
        pace: &'a Pace,
        hystart: HyStart,
    ) -> Self {
        let polled_at = Instant::ZERO;
        Self {
            socket,
            state,
            start,
            pace,
            written: 0,
            polled_at,
            last: None,
            exited: false,
            hystart,
        }
    }

    /// Writes everything, or until the run is over; then closes.
    fn run(mut self, work: &Work) -> Result<(), Failure> {
        let done = self.write(work).and_then(|goes_on| Ok(goes_on && self.drain()?));
        done.and_then(|goes_on| if goes_on { self.close() } else { Ok(()) })
    }

    /// Returns false if the run is over.
    fn write(&mut self, work: &Work) -> Result<bool, Failure> {
        let (mut stop, mut size) = (work.stop, work.size.unwrap_or(u64::MAX));
        while self.written < size {
            let now = self.pace.clock.now();
            if stop.is_some_and(|stop| now >= stop) {
                let Some(end) =
                    work.write.and_then(|write| self.written.checked_next_multiple_of(write))
                else {
                    break;
                };
                (stop, size) = (None, end);
                continue;
            }
            let (due, next) = work.due(now);
            if let Some(next) = next.filter(|_| self.written >= due) {
                let woken = self.pace.until(next.min(now + POLL_INTERVAL));
                if !woken.map_err(|error| Failure::Step("waiting", error))? {
                    return Ok(false);
                }
                self.poll_kernel()?;
                continue;
            }
            let room = (due.min(size) - self.written).min(CHUNK.len() as u64) as usize;
            match send(&self.socket, &CHUNK[..room], SendFlags::NOSIGNAL) {
                Ok(bytes) => self.written += bytes as u64,
                Err(Errno::AGAIN | Errno::INTR) => {
                    if !self.wait_for_room(stop)? {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(Failure::Step("sending", error.into())),
            }
            self.poll_kernel()?;
        }
        Ok(true)
    }

    /// Waits until everything is acknowledged. After a socket is closed its state is no longer
    /// visible (tracepoint `tcp:tcp_probe`), but slow start may end there. Returns false if the run
    /// is over.
    fn drain(&mut self) -> Result<bool, Failure> {
        while send_queue(&self.socket).map_err(|error| Failure::Step("SIOCOUTQ", error))? > 0 {
            let woken = self.pace.until(self.pace.clock.now() + POLL_INTERVAL);
            if !woken.map_err(|error| Failure::Step("waiting", error))? {
                return Ok(false);
            }
            self.poll_kernel()?;
        }
        Ok(true)
    }

    /// Sends what is left; returns when the other end has read everything.
    fn close(&mut self) -> Result<(), Failure> {
        let failed = |error: Errno| Failure::Step("closing", error.into());
        shutdown(&self.socket, Shutdown::Write).map_err(failed)?;
        loop {
            match recv(&self.socket, &mut [0_u8; 1][..], RecvFlags::empty()) {
                Ok((_, 0)) => return Ok(()),
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
            let until = self.pace.clock.now() + POLL_INTERVAL;
            if self.pause(PollFlags::IN, until)? == Woken::Over {
                return Ok(());
            }
            self.poll_kernel()?;
        }
    }

    /// Waits until the kernel wakes a writer, with a third of the buffer free, or until `stop`.
    /// Writing earlier, when there is some room, would hold the socket while acknowledgements
    /// arrive. Returns false if the run is over.
    fn wait_for_room(&mut self, stop: Option<Instant>) -> Result<bool, Failure> {
        loop {
            let next = self.pace.clock.now() + POLL_INTERVAL;
            let until = stop.map_or(next, |stop| stop.min(next));
            match self.pause(PollFlags::OUT, until)? {
                Woken::Over => return Ok(false),
                Woken::Ready => return self.await_burst(),
                Woken::Time if stop.is_some_and(|stop| self.pace.clock.now() >= stop) => {
                    return Ok(true);
                }
                Woken::Time => self.poll_kernel()?,
            }
        }
    }

    /// There is room again, so acknowledgements are arriving. Those that arrive while the program
    /// writes are coalesced (TCPBacklogCoalesce): so it waits until none has arrived for a while,
    /// but only for a part of a round trip, of which the buffer holds two. Returns false if the run
    /// is over.
    fn await_burst(&self) -> Result<bool, Failure> {
        let srtt = self.last.map_or(0.0, |window| window.srtt_ms);
        let most = Duration::from_nanos((srtt * 1e6 / 8.0) as u64).min(POLL_INTERVAL);
        let until = self.pace.clock.now() + most;
        let outstanding =
            || send_queue(&self.socket).map_err(|error| Failure::Step("SIOCOUTQ", error));
        let mut before = outstanding()?;
        loop {
            let now = self.pace.clock.now();
            let woken = self.pace.until(until.min(now + BETWEEN_ACKS));
            if !woken.map_err(|error| Failure::Step("waiting", error))? {
                return Ok(false);
            }
            let after = outstanding()?;
            if after == before || now + BETWEEN_ACKS >= until {
                return Ok(true);
            }
            before = after;
        }
    }

    fn pause(&self, flags: PollFlags, until: Instant) -> Result<Woken, Failure> {
        let woken = self.pace.ready(&self.socket, flags, Some(until));
        woken.map_err(|error| Failure::Step("waiting", error))
    }

    /// Polls the kernel, if it is time to.
    fn poll_kernel(&mut self) -> Result<(), Failure> {
        let now = self.pace.clock.now();
        if now.saturating_since(self.polled_at) < POLL_INTERVAL {
            return Ok(());
        }
        self.polled_at = now;
        let info = tcp_info(&self.socket).map_err(|error| Failure::Step("TCP_INFO", error))?;
        let window = SenderWindow::of(&info);
        // An ssthresh that the kernel kept from an earlier connection is above cwnd at first.
        let ended = window.ssthresh_segments.is_some_and(|ssthresh| {
            window.cwnd_segments >= ssthresh || info.tcpi_total_retrans > 0
        });
        let exit = (ended && !self.exited).then(|| {
            self.exited = true;
            self.exit(now, &info, &window)
        });
        self.last = Some(window);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.window = Some(window);
        state.limited = Some(limit_seconds(&info, now.saturating_since(self.start)));
        state.written = self.written;
        if exit.is_some() {
            state.exit = exit;
        }
        Ok(())
    }

    /// An exit, if slow start has ended since the last poll.
    fn exit(&self, now: Instant, info: &TcpInfo, window: &SenderWindow) -> Exit {
        let HyStart { train_exits, delay_exits } = HyStart::count();
        let reason = if train_exits > self.hystart.train_exits {
            "ack_train"
        } else if delay_exits > self.hystart.delay_exits {
            "delay"
        } else if info.tcpi_ca_state >= CWR || info.tcpi_total_retrans > 0 {
            "loss"
        } else if self.last.is_none_or(|last| last.ssthresh_segments == window.ssthresh_segments) {
            // The connection began with it.
            "ssthresh"
        } else {
            "full_pipe"
        };
        // HyStart sets the threshold to the cwnd of that time; a loss has reduced both since.
        let before = self.last.map_or(window.cwnd_segments, |last| last.cwnd_segments);
        let cwnd_segments = match reason {
            "ack_train" | "delay" => window.ssthresh_segments.unwrap_or(before),
            "loss" => before,
            _ => window.cwnd_segments,
        };
        Exit {
            time_s: now.saturating_since(self.start).as_secs_f64(),
            cwnd_segments,
            reason,
            bdp_fraction: None,
            min_rtt_ms: f64::from(info.tcpi_min_rtt) / 1e3,
            round_rtt_ms: None,
        }
    }
}

/// How long each limit held the sender back (`tcp_get_info_chrono_stats`). The kernel counts pacing
/// with cwnd, and only while data is outstanding: the rest of `lived` is the application's.
fn limit_seconds(info: &TcpInfo, lived: Duration) -> LimitSeconds {
    let [busy, receive_window, send_buffer] =
        [info.tcpi_busy_time, info.tcpi_rwnd_limited, info.tcpi_sndbuf_limited]
            .map(|micros| Duration::from_micros(micros).as_secs_f64());
    LimitSeconds {
        cwnd: (busy - receive_window - send_buffer).max(0.0),
        pacing: 0.0,
        receive_window,
        send_buffer,
        application: (lived.as_secs_f64() - busy).max(0.0),
    }
}

impl SenderWindow {
    fn of(info: &TcpInfo) -> Self {
        let ssthresh = info.tcpi_snd_ssthresh;
        let gone = info.tcpi_sacked + info.tcpi_lost;
        Self {
            cwnd_segments: info.tcpi_snd_cwnd,
            ssthresh_segments: (ssthresh < NO_SSTHRESH).then_some(ssthresh),
            srtt_ms: f64::from(info.tcpi_rtt) / 1e3,
            inflight_segments: (info.tcpi_unacked + info.tcpi_retrans).saturating_sub(gone),
            receive_window_segments: info.tcpi_snd_wnd.checked_div(info.tcpi_snd_mss),
        }
    }
}

impl HyStart {
    /// Reads the counter in the calling thread's namespace.
    fn count() -> Self {
        let counters = counters();
        let of = |name| counters.get(name).copied().unwrap_or(0);
        Self { train_exits: of("TCPHystartTrainDetect"), delay_exits: of("TCPHystartDelayDetect") }
    }
}

/// Reads everything, at the reader's rate or when it is awake.
fn receive(
    socket: &OwnedFd,
    reader: ReaderConfig,
    asked: &Asked,
    pace: &Pace,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Step("receiving", error);
    let (rate, delay) = match reader {
        ReaderConfig::Rate(rate) => (Some(rate), None),
        ReaderConfig::After(delay) => (None, Some(delay)),
        ReaderConfig::AtOnce | ReaderConfig::Driver => (None, None),
    };
    let mut buffer = vec![0; READ_BYTES];
    let (begin, mut read) = (pace.clock.now(), 0_u64);
    loop {
        let most = rate.map_or(READ_BYTES, |rate| {
            let seconds = pace.clock.now().saturating_since(begin).as_secs_f64();
            let allowed = (seconds * rate.mbps() * 1e6 / 8.0) as u64;
            allowed.saturating_sub(read).min(READ_BYTES as u64) as usize
        });
        if most == 0 {
            if !pace.until(pace.clock.now() + POLL_INTERVAL).map_err(failed)? {
                return Ok(());
            }
            continue;
        }
        // tcp(7): MSG_TRUNC reads without copying.
        match recv(socket, &mut buffer[..most], RecvFlags::TRUNC) {
            Ok((_, 0)) => {
                // The sender waits for this end's FIN.
                let _ = sockopt::set_socket_linger(socket, None);
                return Ok(());
            }
            Ok((_, bytes)) => {
                read += bytes as u64;
                asked.hold_window(socket)?;
            }
            Err(Errno::AGAIN) => {
                let woken = pace.ready(socket, PollFlags::IN, None).map_err(failed)?;
                if woken == Woken::Over {
                    return Ok(());
                }
                if let Some(delay) = delay
                    && !pace.until(pace.clock.now() + delay).map_err(failed)?
                {
                    return Ok(());
                }
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_that_writes_at_times_has_an_equal_part_for_each() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let work =
            Work { size: Some(100), writes: vec![at(10), at(20), at(20)], ..Work::default() };
        assert_eq!(work.due(at(9)), (0, Some(at(10))));
        assert_eq!(work.due(at(10)), (33, Some(at(20))));
        assert_eq!(work.due(at(20)), (100, None));
        assert_eq!(Work { size: Some(7), ..Work::default() }.due(at(0)), (7, None));
        assert_eq!(Work::default().due(at(0)), (u64::MAX, None));
    }
}
