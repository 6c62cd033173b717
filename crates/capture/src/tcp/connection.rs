//! Both directions of a connection, its handshake and its end.

use airpath_base::{Duration, Instant};

use super::stream::{Context, Stream};
use crate::decode::{ACK, FIN, RST, SYN, TcpHeader};
use crate::report::{Stalls, SynOptions, TcpReport};

/// A time without packets is a stall if it is at least this long and at least this many round
/// trips.
const SHORTEST_STALL: Duration = Duration::from_millis(200);
const STALL_ROUND_TRIPS: u64 = 4;

/// A TCP connection, with ends 0 and 1.
#[derive(Clone, Default, Debug)]
pub(crate) struct Connection {
    /// Data sent by each end.
    streams: [Stream; 2],
    /// Initial sequence number of each end.
    initial: [Option<u32>; 2],
    /// The end whose SYN came without an acknowledgement.
    opener: Option<usize>,
    first_syn: Option<Instant>,
    established: Option<Instant>,
    finished: [bool; 2],
    reset: bool,
    segments: u64,
    last: Instant,
    stalls: Stalls,
    longest_at: Option<Instant>,
    /// The longest time without a packet, and when it began.
    silence: Option<(Duration, Instant)>,
}

impl Connection {
    /// Whether a segment begins another connection between the same ports.
    pub(crate) fn is_succeeded_by(&self, from: usize, header: &TcpHeader) -> bool {
        header.flags & (SYN | ACK | RST) == SYN
            && self.segments > 0
            && self.initial[from] != Some(header.sequence)
            && (self.initial[from].is_some() || self.initial[1 - from].is_none())
    }

    /// The end that opened the connection, if its SYN or the answer to that was seen.
    pub(crate) fn opener(&self) -> Option<usize> {
        self.opener.or(self.initial.iter().position(Option::is_some).map(|answerer| 1 - answerer))
    }

    /// Whether no further segment is expected.
    pub(crate) fn is_over(&self) -> bool {
        self.reset || self.finished == [true; 2]
    }

    pub(crate) fn retransmitted(&self) -> u64 {
        self.streams.iter().map(Stream::retransmitted).sum()
    }

    /// Segments of an end whose receiver reported that it got them twice.
    pub(crate) fn duplicates(&self, end: usize) -> u64 {
        self.streams[end].duplicates()
    }

    /// Acknowledgements of bytes that were not captured, and the number of those bytes.
    pub(crate) fn unseen(&self) -> (u64, u64) {
        let [(acks, bytes), (other_acks, other_bytes)] =
            [0, 1].map(|end| self.streams[end].unseen());
        (acks + other_acks, bytes + other_bytes)
    }

    /// Handles a segment that an end sent; `most_outstanding` bounds the segments kept for each
    /// direction.
    #[inline]
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        from: usize,
        header: &TcpHeader,
        most_outstanding: usize,
    ) {
        if self.segments > 0 {
            self.note_silence(now);
        }
        (self.segments, self.last) = (self.segments + 1, self.last.max(now));
        if header.flags & (SYN | FIN | RST) != 0 || self.established.is_none() {
            self.on_control(now, from, header);
        }
        // The sequence numbers of a reset often lie outside the connection's.
        if header.has(RST) {
            return;
        }
        let to = 1 - from;
        if header.has(ACK) {
            let context = Context { now, other_rtt: None, most_outstanding };
            self.streams[to].on_ack(&context, header);
        }
        let other_rtt = self.streams[to].rtt();
        let context = Context { now, other_rtt, most_outstanding };
        self.streams[from].on_segment(&context, header);
    }

    #[inline]
    fn note_silence(&mut self, now: Instant) {
        let silence = now.saturating_since(self.last);
        if silence >= SHORTEST_STALL {
            if self.silence.is_none_or(|(longest, _)| silence > longest) {
                self.silence = Some((silence, self.last));
            }
            self.note_stall(silence);
        }
    }

    #[cold]
    fn note_stall(&mut self, silence: Duration) {
        if !self.streams.iter().any(Stream::is_outstanding) {
            return;
        }
        let rtts = self.streams.iter().filter_map(Stream::rtt).map(|(_, smoothed)| smoothed);
        let rtt = rtts.fold(Duration::ZERO, |sum, rtt| sum + rtt);
        if silence < rtt * STALL_ROUND_TRIPS {
            return;
        }
        let seconds = silence.as_nanos() as f64 / 1e9;
        self.stalls.count += 1;
        self.stalls.total_s += seconds;
        if seconds > self.stalls.longest_s {
            self.stalls.longest_s = seconds;
            self.longest_at = Some(self.last);
        }
    }

    /// Handles the segments that open and close the connection.
    fn on_control(&mut self, now: Instant, from: usize, header: &TcpHeader) {
        self.reset |= header.has(RST);
        self.finished[from] |= header.has(FIN);
        if header.has(SYN) && !header.has(RST) {
            self.on_syn(now, from, header);
        } else if self.initial == [None; 2] {
            // The connection was open before the capture began.
            self.established.get_or_insert(now);
        } else if self.initial.iter().all(Option::is_some) && Some(from) == self.opener {
            self.established.get_or_insert(now);
        }
    }

    fn on_syn(&mut self, now: Instant, from: usize, header: &TcpHeader) {
        if !header.has(ACK) {
            self.opener.get_or_insert(from);
            self.first_syn.get_or_insert(now);
        }
        if self.initial[from].is_some() {
            return;
        }
        self.initial[from] = Some(header.sequence);
        let options = SynOptions {
            mss: header.mss,
            window_scale: header.window_scale,
            sack_permitted: header.sack_permitted,
            timestamps: header.timestamps.is_some(),
            cut: header.is_cut,
        };
        self.streams[from].set_options(options);
        let [first, second] = [0, 1].map(|end| self.streams[end].options());
        if let (Some(first), Some(second)) = (first, second) {
            // RFC 7323 2.2: either both ends scale, or neither does.
            let is_cut = |options: SynOptions| options.window_scale.is_none() && options.cut;
            let scales = match first.window_scale.zip(second.window_scale) {
                Some((first, second)) => Some([first, second]),
                None if is_cut(first) || is_cut(second) => None,
                None => Some([0; 2]),
            };
            self.streams[0].set_receiver(&second, scales.map(|scales| scales[1]));
            self.streams[1].set_receiver(&first, scales.map(|scales| scales[0]));
        }
    }

    /// Reports the connection from the client's point of view; times are counted from `epoch`.
    pub(crate) fn report(&self, client: usize, epoch: Instant) -> TcpReport {
        let handshake = self
            .first_syn
            .zip(self.established)
            .filter(|_| self.opener.is_some() && self.initial.iter().all(Option::is_some));
        let longest_at = self.longest_at.map(|at| at.saturating_since(epoch));
        let stream = |end: usize| {
            let sender_side = self.streams[1 - end].rtt().map(|(min, _)| min);
            self.streams[end].report(self.last, sender_side)
        };
        TcpReport {
            opening_seen: self.opener.is_some(),
            handshake_ms: handshake.map(|(syn, done)| done.saturating_since(syn).as_millis_f64()),
            state: match self.finished {
                _ if self.reset => "reset",
                [true, true] => "closed",
                _ => "open",
            },
            stalls: Stalls {
                longest_at_s: longest_at.map(|at| at.as_nanos() as f64 / 1e9),
                ..self.stalls
            },
            longest_silence_s: self.silence.map_or(0.0, |(length, _)| length.as_secs_f64()),
            longest_silence_at_s: self
                .silence
                .map(|(_, at)| at.saturating_since(epoch).as_secs_f64()),
            from_client: stream(client),
            from_server: stream(1 - client),
        }
    }
}
