//! The options of a flow's socket, and what the kernel says about its connection.
//!
//! A connection may differ from the socket that it was made from: the kernel prefers the congestion
//! control of a route to that of the socket, accepted or connecting, and recomputes window and
//! buffers. So flows that differ have routes of their own (docs/adr/0022-sockets-are-asked.md), and
//! each connection is queried.

use std::io;
use std::os::fd::OwnedFd;

use airpath_tcp::EndpointConfig;
use rustix::net::sockopt;
use serde::Serialize;

use super::{End, Failure, Opened};
use crate::sys::{set_largest_segment, set_mark, set_window_clamp, tcp_info, window_clamp};

/// Bytes of IPv4 and TCP headers without options.
const BARE_HEADER_BYTES: u32 = 40;

/// Bytes of timestamps in every segment, padded (RFC 7323 A); `tcpi_options` has this bit for them.
const TIMESTAMP_BYTES: u32 = 12;
const HAS_TIMESTAMPS: u8 = 1;

/// The state of one end's connection in the kernel, just after its handshake.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketState {
    /// Name of the congestion control (TCP_CONGESTION).
    pub congestion: String,
    /// The segment size that it advertises, including TCP options.
    pub mss_bytes: u32,
    /// The initial congestion window.
    pub cwnd_segments: u32,
    /// SO_RCVBUF as counted by the kernel: twice what was requested.
    pub receive_buffer_bytes: usize,
    /// SO_SNDBUF as counted by the kernel: twice what was requested.
    pub send_buffer_bytes: usize,
    /// TCP_WINDOW_CLAMP in bytes.
    pub window_clamp_bytes: u32,
}

/// Both ends of a flow.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowSockets {
    /// Name of the flow.
    pub id: String,
    /// The sender's connection; null if there was none.
    pub sender: Option<SocketState>,
    /// The receiver's connection; null if there was none.
    pub receiver: Option<SocketState>,
    /// How long the writing thread was ready to run while others had the processor; null if the
    /// kernel does not report it.
    pub sender_waited_ms: Option<f64>,
    /// How long the reading thread was ready to run while others had the processor; null if the
    /// kernel does not report it.
    pub receiver_waited_ms: Option<f64>,
}

/// Options set on a socket. `None`: the kernel decides.
#[derive(Clone, Default, Debug)]
pub(super) struct Asked {
    congestion: String,
    mss: Option<u32>,
    window_clamp: Option<u32>,
    /// Sizes as counted by the kernel.
    receive_buffer: Option<usize>,
    send_buffer: Option<usize>,
}

/// A socket configured like an end of the scenario, as far as the kernel supports it.
pub(super) fn socket(
    flow: &str,
    end: End<'_>,
    config: &EndpointConfig,
) -> Opened<(OwnedFd, Asked)> {
    let socket = end.tcp_socket()?;
    let congestion = end.profile.congestion_of(flow, config);
    let mut asked = Asked { congestion, ..Asked::default() };
    let set = |step, done: io::Result<()>| done.map_err(|error| (step, error));
    if let Some(mark) = end.profile.mark_of(flow, config) {
        set("SO_MARK", set_mark(&socket, mark))?;
    }
    let done = sockopt::set_tcp_congestion(&socket, &asked.congestion);
    set("TCP_CONGESTION", done.map_err(Into::into))?;
    let packet = config.mss + config.header;
    if packet < end.profile.mtu {
        let mss = packet - BARE_HEADER_BYTES;
        set("TCP_MAXSEG", set_largest_segment(&socket, mss))?;
        asked.mss = Some(mss);
    }
    // The kernel doubles the given size for its own overhead (socket(7)). Half of a receive buffer
    // is window; all of a send buffer is the scenario's.
    if !config.receive_buffer.tuned {
        let bytes = config.receive_buffer.max;
        let done = sockopt::set_socket_recv_buffer_size_force(&socket, capped(bytes));
        set("SO_RCVBUFFORCE", done.map_err(Into::into))?;
        let most = u32::try_from(bytes).unwrap_or(u32::MAX);
        set("TCP_WINDOW_CLAMP", set_window_clamp(&socket, most))?;
        let error = |error: rustix::io::Errno| ("SO_RCVBUF", error.into());
        asked.receive_buffer = Some(sockopt::socket_recv_buffer_size(&socket).map_err(error)?);
        // Very small values are increased.
        let clamp = window_clamp(&socket).map_err(|error| ("TCP_WINDOW_CLAMP", error))?;
        asked.window_clamp = Some(clamp);
    }
    if config.send_buffer_factor.is_none() {
        let half = capped(config.send_buffer / 2);
        let done = sockopt::set_socket_send_buffer_size_force(&socket, half);
        set("SO_SNDBUFFORCE", done.map_err(Into::into))?;
        let error = |error: rustix::io::Errno| ("SO_SNDBUF", error.into());
        asked.send_buffer = Some(sockopt::socket_send_buffer_size(&socket).map_err(error)?);
    }
    Ok((socket, asked))
}

/// The size of a buffer for a call that takes an int and doubles it.
fn capped(bytes: u64) -> usize {
    bytes.min(i32::MAX as u64 / 2) as usize
}

impl Asked {
    /// Checks that a connection is as requested; returns its state in the kernel.
    ///
    /// # Errors
    ///
    /// The first difference.
    pub(super) fn on(&self, connection: &OwnedFd) -> Result<SocketState, Failure> {
        let failed = |step| move |error: io::Error| Failure::Step(step, error);
        // Not the congestion control: a connection that began with BBR stays paced with another
        // one.
        self.hold_window(connection)?;
        let read = || SocketState::of(connection).map_err(failed("asking the connection"));
        let mut state = read()?;
        if self.window_clamp.is_some_and(|most| most != state.window_clamp_bytes) {
            // The first segment arrived in between.
            self.hold_window(connection)?;
            state = read()?;
        }
        self.compare(&state)?;
        Ok(state)
    }

    /// Sets the window again: Linux since 6.8 forgets it when it learns the size of segments.
    pub(super) fn hold_window(&self, connection: &OwnedFd) -> Result<(), Failure> {
        let Some(most) = self.window_clamp else { return Ok(()) };
        let failed = |error| Failure::Step("TCP_WINDOW_CLAMP", error);
        if window_clamp(connection).map_err(failed)? == most {
            return Ok(());
        }
        set_window_clamp(connection, most).map_err(failed)
    }

    fn compare(&self, state: &SocketState) -> Result<(), Failure> {
        let same = |option, asked: Option<u64>, got: u64| match asked {
            Some(asked) if asked != got => Err(Failure::differs(option, asked, got)),
            _ => Ok(()),
        };
        if self.congestion != state.congestion {
            return Err(Failure::differs("TCP_CONGESTION", &self.congestion, &state.congestion));
        }
        same("TCP_MAXSEG", self.mss.map(u64::from), state.mss_bytes.into())?;
        let clamp = self.window_clamp.map(u64::from);
        same("TCP_WINDOW_CLAMP", clamp, state.window_clamp_bytes.into())?;
        let buffer = |bytes: usize| bytes as u64;
        let [receive, send] = [state.receive_buffer_bytes, state.send_buffer_bytes].map(buffer);
        same("SO_RCVBUF", self.receive_buffer.map(buffer), receive)?;
        same("SO_SNDBUF", self.send_buffer.map(buffer), send)
    }
}

impl SocketState {
    fn of(connection: &OwnedFd) -> io::Result<Self> {
        let info = tcp_info(connection)?;
        let timestamps = info.tcpi_options & HAS_TIMESTAMPS > 0;
        Ok(Self {
            congestion: sockopt::tcp_congestion(connection)?,
            mss_bytes: info.tcpi_advmss + if timestamps { TIMESTAMP_BYTES } else { 0 },
            cwnd_segments: info.tcpi_snd_cwnd,
            receive_buffer_bytes: sockopt::socket_recv_buffer_size(connection)?,
            send_buffer_bytes: sockopt::socket_send_buffer_size(connection)?,
            window_clamp_bytes: window_clamp(connection)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_that_is_not_as_its_socket_was_told_is_said() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        sockopt::set_tcp_congestion(&listener, "reno").unwrap();
        let _other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let connection = OwnedFd::from(listener.accept().unwrap().0);
        let reno = Asked { congestion: "reno".to_owned(), ..Asked::default() };
        let state = reno.on(&connection).unwrap();
        assert_eq!(state.congestion, "reno");
        let said = |asked: Asked| asked.on(&connection).unwrap_err().to_string();
        let cubic = Asked { congestion: "cubic".to_owned(), ..reno.clone() };
        assert_eq!(said(cubic), "TCP_CONGESTION: cubic was requested, but the kernel has reno");
        let small = Asked { mss: Some(536), ..reno.clone() };
        assert!(said(small).starts_with("TCP_MAXSEG: 536 was requested"));
        let large = Asked { receive_buffer: Some(1), ..reno.clone() };
        assert!(said(large).starts_with("SO_RCVBUF: 1 was requested"));
        // Options that can be set again are set.
        let told = Asked { window_clamp: Some(20_000), ..reno };
        assert_eq!(told.on(&connection).unwrap().window_clamp_bytes, 20_000);
    }
}
