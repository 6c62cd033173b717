//! What a driver needs of one end of a connection, whichever stack implements it.

use airpath_base::{Duration, Ecn, Instant};

/// One end of a connection that carries one stream of bytes in one direction.
///
/// The end that sends opens the stream when the handshake is done, and closes the connection when
/// all that it wrote is acknowledged. After a call that takes `now`, and after [`Endpoint::offer`]
/// and [`Endpoint::close_when_written`], the driver calls [`Endpoint::transmit`], and then asks for
/// [`Endpoint::next_timer`].
pub trait Endpoint: Send {
    /// A datagram has arrived.
    fn on_datagram(&mut self, now: Instant, ecn: Ecn, payload: &[u8]);

    /// A timer may have expired; the call may be early.
    fn on_timer(&mut self, now: Instant);

    /// When [`Endpoint::on_timer`] is next needed.
    fn next_timer(&mut self) -> Option<Instant>;

    /// Passes every datagram that may leave now to `send`.
    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(Ecn, &[u8]));

    /// The application has this many more bytes to write.
    fn offer(&mut self, bytes: u64);

    /// The application writes nothing more than what it has written: what is offered and did not yet
    /// fit into the send window is dropped.
    fn close(&mut self);

    /// The application closes the stream after the last byte that it offered.
    fn close_when_written(&mut self);

    /// Bytes that the application has written.
    fn written(&self) -> u64;

    /// Bytes that the application has read, in order.
    fn delivered(&self) -> u64;

    /// Whether the handshake is complete, as this end sees it.
    fn is_established(&self) -> bool;

    /// Whether everything is acknowledged and closed, or the connection is lost.
    fn is_finished(&self) -> bool;

    /// Why the connection was lost, if it was not closed in order.
    fn failure(&self) -> Option<&str>;

    /// Takes an RTT sample, with the time at which it was measured: from when a packet was sent until
    /// its acknowledgement arrived, however long the receiver held that back.
    fn take_rtt_sample(&mut self) -> Option<Duration>;

    /// Smoothed RTT; `None` before the first sample.
    fn srtt(&self) -> Option<Duration>;

    /// The congestion window now.
    fn window(&self) -> Window;

    /// Number of UDP datagrams that have left this end, with data or without.
    fn datagrams_sent(&self) -> u64;

    /// Packets that this end took for lost.
    fn packets_lost(&self) -> u64;

    /// How long each limit restrained the sender, until `now`.
    fn limited(&self, now: Instant) -> Limited;
}

/// Time for which each limit restrained a sender. The rest is time with nothing to send.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limited {
    /// By congestion control: its window or its pacing.
    pub congestion: Duration,
    /// By flow control: what the receiver lets the sender send (RFC 9000 4.1).
    pub receive_window: Duration,
    /// By what the sender keeps until it is acknowledged.
    pub send_window: Duration,
}

/// The state of a sender's congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Bytes that may be in flight.
    pub bytes: u64,
    /// Slow start threshold in bytes; `None` before the first congestion.
    pub threshold: Option<u64>,
    /// Bytes in flight at the last acknowledgement or datagram sent.
    pub in_flight: u64,
    /// Bytes of the largest UDP payload now.
    pub mtu: u16,
}
