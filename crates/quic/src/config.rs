//! Settings of a connection. A default is the stack's own, so that a scenario says what differs.

use airpath_base::Duration;

/// Settings of both ends.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Congestion control of the end that sends.
    pub congestion: Congestion,
    /// Initial congestion window in bytes.
    pub initial_window: u64,
    /// The RTT that is assumed before there is a sample (RFC 9002 6.2.2).
    pub initial_rtt: Duration,
    /// Largest UDP payload in bytes before path MTU discovery; at least 1200 (RFC 9000 14.1).
    pub initial_mtu: u16,
    /// Largest UDP payload in bytes that path MTU discovery tries (RFC 8899). If it is
    /// `initial_mtu`, there is no discovery.
    pub max_mtu: u16,
    /// Bytes that the receiver lets the sender have under way on the stream (RFC 9000 4.1).
    pub receive_window: u64,
    /// Bytes that the sender keeps until they are acknowledged.
    pub send_window: u64,
    /// How often the sender asks the receiver to acknowledge; `None`: it does not ask.
    pub ack_frequency: Option<AckFrequency>,
    /// Time without a packet after which both ends give the connection up (RFC 9000 10.1).
    pub idle_timeout: Duration,
    /// Size of the server's certificate in bytes; `None`: the smallest.
    pub certificate_bytes: Option<u32>,
}

/// What the sender asks of the receiver's acknowledgements (draft-ietf-quic-ack-frequency).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckFrequency {
    /// Packets after which the receiver acknowledges at once; 2 is what RFC 9000 13.2.2 recommends.
    pub packets: u32,
    /// How long the receiver may wait; `None`: as long as without the request, 25 ms.
    pub max_delay: Option<Duration>,
}

/// Congestion control algorithms of the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// RFC 9438.
    Cubic,
    /// RFC 9002 7.
    NewReno,
}

impl Congestion {
    /// Name in scenarios and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::NewReno => "new-reno",
        }
    }
}
