//! TCP_INFO of a network namespace's sockets, by `NETLINK_SOCK_DIAG`: sock_diag(7).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

use super::observed::{Found, Kind, Observation, State, congestion_name};
use crate::clock::monotonic;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const SOCK_DESTROY: u16 = 21;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = 56;
const MESSAGE_BYTES: usize = 72;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET: u8 = 2;
const INET6: u8 = 10;
const TCP: u8 = 6;
/// All states in which there is or was a connection: not SYN_SENT, SYN_RECV, TIME_WAIT, CLOSE,
/// LISTEN, NEW_SYN_RECV.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// Polls between two searches for new sockets: a search goes through the table of the whole
/// machine.
const SEARCH_EVERY: u32 = 10;

/// The sockets of one namespace.
pub(super) struct Sockets {
    end: usize,
    /// A netlink socket, which belongs to the namespace in which it was made.
    netlink: OwnedFd,
    known: Vec<Identity>,
    rounds: u32,
    buffer: Vec<u8>,
}

/// `struct inet_diag_sockid` and the address family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Identity {
    family: u8,
    id: [u8; 48],
}

impl Sockets {
    /// The sockets of the calling thread's network namespace.
    pub(super) fn new(end: usize) -> io::Result<Self> {
        let kind = (AddressFamily::NETLINK, SocketType::DGRAM);
        let netlink = socket_with(kind.0, kind.1, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
        Ok(Self { end, netlink, known: Vec::new(), rounds: 0, buffer: vec![0; 1 << 16] })
    }

    /// Ends each connection at once, including those that no program has any more: its end would
    /// continue for minutes to send what the other end will never acknowledge, and keep the
    /// namespace and its congestion control.
    ///
    /// # Errors
    ///
    /// If the kernel has no `CONFIG_INET_DIAG_DESTROY`.
    pub(super) fn abort_all(&mut self) -> io::Result<()> {
        let mut found = Vec::new();
        for family in [INET, INET6] {
            self.ask(NLM_F_REQUEST | NLM_F_DUMP, family, &[0; 48], &mut found)?;
        }
        for (Identity { family, id }, _) in found {
            let order = request(SOCK_DESTROY, NLM_F_REQUEST | NLM_F_ACK, family, &id);
            send(&self.netlink, &order, SendFlags::empty())?;
            // An error if it has just ended by itself.
            recv(&self.netlink, &mut self.buffer[..], RecvFlags::empty())?;
        }
        Ok(())
    }

    /// Reads the state of each socket that has a connection.
    pub(super) fn poll_kernel(&mut self, note: &mut impl FnMut(&Observation)) -> io::Result<()> {
        let search = self.rounds.is_multiple_of(SEARCH_EVERY);
        self.rounds = self.rounds.wrapping_add(1);
        let mut found = Vec::new();
        if search {
            for family in [INET, INET6] {
                self.ask(NLM_F_REQUEST | NLM_F_DUMP, family, &[0; 48], &mut found)?;
            }
            self.known.clear();
        } else {
            for identity in std::mem::take(&mut self.known) {
                self.ask(NLM_F_REQUEST, identity.family, &identity.id, &mut found)?;
            }
        }
        for (identity, seen) in found {
            self.known.push(identity);
            note(&seen);
        }
        Ok(())
    }

    /// Requests one socket, or all of a family.
    fn ask(
        &mut self,
        flags: u16,
        family: u8,
        id: &[u8; 48],
        found: &mut Vec<(Identity, Observation)>,
    ) -> io::Result<()> {
        let question = request(SOCK_DIAG_BY_FAMILY, flags, family, id);
        send(&self.netlink, &question, SendFlags::empty())?;
        let dump = flags & NLM_F_DUMP != 0;
        loop {
            let (bytes, _) = recv(&self.netlink, &mut self.buffer[..], RecvFlags::empty())?;
            let ended = read(&self.buffer[..bytes], self.end, monotonic(), found);
            if ended || !dump {
                return Ok(());
            }
        }
    }
}

/// `struct nlmsghdr`, `struct inet_diag_req_v2`.
fn request(kind: u16, flags: u16, family: u8, id: &[u8; 48]) -> [u8; HEADER_BYTES + REQUEST_BYTES] {
    let mut request = [0; HEADER_BYTES + REQUEST_BYTES];
    let length = request.len() as u32;
    request[..4].copy_from_slice(&length.to_ne_bytes());
    request[4..6].copy_from_slice(&kind.to_ne_bytes());
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    let extensions = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);
    request[16..20].copy_from_slice(&[family, TCP, extensions, 0]);
    request[20..24].copy_from_slice(&STATES.to_ne_bytes());
    request[24..].copy_from_slice(id);
    request
}

/// Reads one answer of the kernel; returns whether it was the last one.
pub(super) fn read(
    mut answer: &[u8],
    end: usize,
    time_ns: u64,
    found: &mut Vec<(Identity, Observation)>,
) -> bool {
    while let Some((kind, body, after)) = message(answer) {
        match kind {
            // The requested socket is gone.
            NLMSG_DONE | NLMSG_ERROR => return true,
            _ => found.extend(parse(body, end, time_ns)),
        }
        answer = after;
    }
    false
}

/// Type and body of the first message, and what follows it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes([*bytes.get(4)?, *bytes.get(5)?]);
    let body = bytes.get(HEADER_BYTES..length)?;
    Some((kind, body, bytes.get(length.next_multiple_of(4)..).unwrap_or(&[])))
}

/// `struct inet_diag_msg` and its attributes.
fn parse(body: &[u8], end: usize, time_ns: u64) -> Option<(Identity, Observation)> {
    let (fixed, mut rest) = body.split_at_checked(MESSAGE_BYTES)?;
    let (mut info, mut congestion) = (None, "");
    while let Some(header) = rest.first_chunk::<4>() {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let value = rest.get(4..length)?;
        match u16::from_ne_bytes([header[2], header[3]]) {
            INET_DIAG_INFO => info = Some(value),
            INET_DIAG_CONG => congestion = std::str::from_utf8(value).ok()?.trim_end_matches('\0'),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    let family = fixed[0];
    let id: [u8; 48] = fixed[4..52].try_into().ok()?;
    let port = |at: usize| u16::from_be_bytes([id[at], id[at + 1]]);
    let address: [u8; 16] = id[20..36].try_into().ok()?;
    let v4 = Ipv4Addr::new(address[0], address[1], address[2], address[3]);
    let remote = if family == INET6 { Ipv6Addr::from(address).to_canonical() } else { v4.into() };
    let cookie = u64::from(u32::from_ne_bytes(id[44..48].try_into().ok()?)) << 32
        | u64::from(u32::from_ne_bytes(id[40..44].try_into().ok()?));
    let seen = Observation {
        time_ns,
        end,
        cookie,
        kind: Kind::Poll,
        v6: matches!(remote, IpAddr::V6(_)),
        local_port: port(0),
        remote_port: port(2),
        remote,
        congestion: congestion_name(congestion),
        state: state(info?)?,
        found: Found::default(),
    };
    Some((Identity { family, id }, seen))
}

/// `struct tcp_info` (uapi/linux/tcp.h), which only grows from version to version.
fn state(info: &[u8]) -> Option<State> {
    let word = |at: usize| Some(u32::from_ne_bytes(info.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?));
    let known = |micros: u32| Some(micros).filter(|&micros| micros > 0 && micros < u32::MAX);
    let (unacked, sacked, lost, again) = (word(24)?, word(28)?, word(32)?, word(36)?);
    let timeouts = info.get(240..242).map_or(0, |half| u16::from_ne_bytes([half[0], half[1]]));
    Some(State {
        acked_bytes: long(120)?,
        cwnd: word(80)?,
        ssthresh: Some(word(76)?).filter(|&ssthresh| ssthresh < 0x7fff_ffff),
        srtt_us: known(word(68)?),
        rtt_us: None,
        min_rtt_us: known(word(148)?),
        in_flight: unacked.saturating_add(again).saturating_sub(sacked.saturating_add(lost)),
        // Since Linux 5.4.
        receive_window: word(228).and_then(|bytes| bytes.checked_div(word(16)?)),
        lost,
        delivered: word(192).unwrap_or(0),
        prior_cwnd: 0,
        rto_ms: f64::from(word(8)?) / 1e3,
        retransmitted: word(100)?,
        timeouts: timeouts.into(),
        congestion_state: info[1],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by `make fuzz-coverage`.
    #[test]
    fn counters_of_a_socket_may_be_as_large_as_they_can() {
        assert_eq!(state(&[0xff; 248]).unwrap().in_flight, 0);
        let mut info = [0xff; 248];
        // tcpi_sacked and tcpi_lost
        info[28..36].fill(0);
        assert_eq!(state(&info).unwrap().in_flight, u32::MAX);
    }
}
