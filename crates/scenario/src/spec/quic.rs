//! Keys of QUIC flows. Their defaults are those of quinn.

use super::{Chosen, Default, Key, Kind, MS_ABOVE_0, Need, S_ABOVE_0, Subtable, Unit, count};

/// The subtable `mtu`, which a TCP flow does not have.
pub(super) const MTU_SUBTABLE: Subtable =
    Subtable { name: "mtu", doc: "The largest datagrams (RFC 9000 14)." };

const MTU: Kind = count(Unit::Bytes, 1200, 65527);

/// Keys of both ends.
pub(super) const QUIC: &[Key] = &[
    Key::new(
        "size_bytes",
        count(Unit::Bytes, 1, 1 << 50),
        Default::Absent("until `duration_s` or the end of the run"),
        "Sends this many bytes, then closes the connection.",
    )
    .excludes(&["duration_s"]),
    Key::new(
        QuicCongestion::KEY,
        Kind::Choice(QuicCongestion::CHOICES),
        Default::Value("\"cubic\""),
        "Congestion control of the sender, as quinn has it. Its BBR is left out: it draws numbers \
         from the operating system, so that no run could be repeated.",
    ),
    Key::new(
        "initial_window_bytes",
        count(Unit::Bytes, 2400, 1 << 30),
        Default::Value("12000"),
        "Initial congestion window (RFC 9002 7.2).",
    ),
    Key::new(
        "initial_rtt_ms",
        MS_ABOVE_0,
        Default::Value("333"),
        "The RTT that both ends assume before they have measured one (RFC 9002 6.2.2).",
    ),
    Key::new(
        "receive_window_bytes",
        count(Unit::Bytes, 1200, 1 << 40),
        Default::Value("1250000"),
        "Bytes that the sender may have under way before the receiver has read them (RFC 9000 4.1). \
         The window stays as it is: the goodput is at most this per RTT.",
    ),
    Key::new(
        "send_window_bytes",
        count(Unit::Bytes, 1200, 1 << 40),
        Default::Value("10000000"),
        "Bytes that the sender keeps until they are acknowledged.",
    ),
    Key::new(
        "idle_timeout_s",
        S_ABOVE_0,
        Default::Value("30"),
        "Both ends give up a connection on which nothing has arrived for this time (RFC 9000 10.1).",
    ),
    Key::new(
        "certificate_bytes",
        count(Unit::Bytes, 300, 60000),
        Default::Absent("the smallest, about 240"),
        "Size of the server's certificates. Before it knows the client's address, a server may send \
         three times what it has received (RFC 9000 8.1).",
    ),
    Key::new(
        "ack.packets",
        count(Unit::Packets, 1, 10_000),
        Default::Absent("it does not ask, and 2 is usual"),
        "Number of packets after which the sender asks the receiver to acknowledge at once \
         (draft-ietf-quic-ack-frequency).",
    ),
    Key::new(
        "ack.delay_ms",
        MS_ABOVE_0,
        Default::Absent("25 ms"),
        "How long the sender asks the receiver to wait at most for that many packets. The stack takes \
         no more than the larger of 25 ms and the RTT.",
    )
    .needs(Need::Given("ack.packets")),
    Key::new(
        "mtu.initial_bytes",
        MTU,
        Default::Value("1200"),
        "Largest UDP payload at first.",
    ),
    Key::new(
        "mtu.max_bytes",
        MTU,
        Default::Value("1452"),
        "Largest UDP payload that path MTU discovery tries (RFC 8899). If it is not above \
         `mtu.initial_bytes`, there is no discovery.",
    ),
];

choices! {
    /// Values of a QUIC flow's `congestion`.
    QuicCongestion("congestion") {
        Cubic = "cubic": "CUBIC (RFC 9438).",
        NewReno = "new-reno": "NewReno (RFC 9002 7).",
    }
}
