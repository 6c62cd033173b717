//! Causes in sentences.

use airpath_scenario::Edit;

use crate::cause::Cause;
use crate::text::count;

/// Which buffers of TCP, or windows of QUIC, some settings enlarge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Buffers {
    Send,
    Receive,
    Both,
    QuicSend,
    QuicReceive,
    QuicBoth,
}

impl Buffers {
    pub(crate) fn of(edits: &[Edit]) -> Self {
        let any = |name: &str| edits.iter().any(|edit| edit.key.name() == name);
        match (any("send_window_bytes"), any("receive_window_bytes")) {
            (true, false) => return Self::QuicSend,
            (false, true) => return Self::QuicReceive,
            (true, true) => return Self::QuicBoth,
            (false, false) => {}
        }
        match (any("send_buffer_bytes"), any("receive_buffer_bytes")) {
            (true, false) => Self::Send,
            (false, true) => Self::Receive,
            // `window_bytes` sets both.
            _ => Self::Both,
        }
    }

    const fn large(self) -> &'static str {
        match self {
            Self::Send => "With a large send buffer",
            Self::Receive => "With a large receive buffer",
            Self::Both => "With large buffers at both ends",
            Self::QuicSend => "With a large send window",
            Self::QuicReceive => "With a large receive window",
            Self::QuicBoth => "With large windows at both ends",
        }
    }

    /// What to do for this many flows; `size` is by how much, if known.
    pub(crate) fn raise(self, flows: &str, how_many: usize, size: Option<f64>) -> String {
        let s = if how_many > 1 { "s" } else { "" };
        let size = size.map_or_else(String::new, |size| format!(" to {} bytes", count(size)));
        match self {
            Self::Send => format!(
                "Raise the send buffer{s} of {flows}{size} (net.ipv4.tcp_wmem, third value; SO_SNDBUF)."
            ),
            Self::Receive => format!(
                "Raise the receive buffer{s} of {flows}{size} (net.ipv4.tcp_rmem, third value; SO_RCVBUF)."
            ),
            Self::Both => format!(
                "Raise the buffers of {flows}{size} at both ends (net.ipv4.tcp_rmem and tcp_wmem, third \
                 value; SO_RCVBUF and SO_SNDBUF; iperf3 -w)."
            ),
            Self::QuicSend => format!(
                "Raise the send window{s} of {flows}{size} (what the sender's QUIC library keeps until it is \
                 acknowledged)."
            ),
            Self::QuicReceive => format!(
                "Raise the receive window{s} of {flows}{size} (flow control of the receiver's QUIC library; RFC 9000 4)."
            ),
            Self::QuicBoth => format!(
                "Raise the windows of {flows}{size} in the QUIC libraries at both ends (flow control at the receiver, \
                 unacknowledged data at the sender)."
            ),
        }
    }
}

/// Beginning of a sentence about the removal by these settings from this many subjects.
pub(crate) fn without(cause: Cause, subjects: usize, edits: &[Edit]) -> &'static str {
    match cause {
        Cause::Bufferbloat if subjects > 1 => "With CoDel in these queues",
        Cause::OneWayPath => "Without the firewall",
        Cause::DoubleNat => "Without this NAT",
        Cause::NatBinding => "With a binding that does not expire",
        Cause::Mtu => "With a larger MTU",
        Cause::Fragmentation => "With an MTU that avoids fragmentation",
        Cause::Vpn if edits.iter().any(switches_off) => "Without the VPN",
        Cause::Vpn => "With MTUs that leave room for the VPN's headers",
        Cause::Offload => "Without this offload",
        Cause::RandomLoss => "Without these losses",
        Cause::Policer => "Without the policer",
        Cause::Shaper => "Without the shaper",
        Cause::Reordering => "Without reordering",
        Cause::StallingHost => "Without the stalls",
        Cause::ReceiveRing => "With a receive ring that holds every burst",
        Cause::HostProcessor => "With no processor time per packet",
        Cause::InterruptModeration => "Without interrupt moderation",
        Cause::AggregationTimer => "Without the aggregation timer",
        Cause::ModemCeiling => "With bus transfers that take no time",
        Cause::Proxy => "Without the proxy",
        Cause::CrossTraffic => "Without this traffic",
        Cause::ReceiveWindow | Cause::SendBuffer => Buffers::of(edits).large(),
        Cause::ApplicationLimited => "With an application that does not wait",
        Cause::KeptSsthresh => "Without the ssthresh of earlier connections",
        Cause::ShortQueue => "With a queue that holds every burst",
        Cause::Bufferbloat => "With CoDel in this queue",
        Cause::AckStarvation => "With at least ten times the rate on this link",
        Cause::AckBatching => "Without batching",
        Cause::Drx => "Without DRX",
        Cause::UplinkAccess if about_reports(edits) => "With grants for unreported data",
        Cause::UplinkAccess => "With scheduling requests every 10 ms",
        Cause::RadioLoss => "Without failed transport blocks",
        Cause::PdcpGap => "With a shorter t-Reordering",
        Cause::SplitBearer if edits.iter().any(switches_off) => "With the bearer on one leg",
        Cause::SplitBearer => {
            "With each packet sent on the leg where it waits less, and both legs in one base station"
        }
        Cause::RrcPromotion => "With a UE that is always connected",
        Cause::Handover => "With handovers that neither interrupt traffic nor lose packets",
        Cause::CellOutage => "With every cell in service",
        Cause::RadioLinkFailure => "Without radio link failure",
        Cause::CongestionMix => "With the same congestion control for all flows",
        Cause::Placement => "With the server next to the mobile network",
        Cause::EmulationHost => "With every packet on time",
        Cause::SlowStartExit => "With slow start until a loss",
        Cause::SlowStart => "With an initial window that fills the path",
        Cause::CongestionControl => "With another congestion control",
        Cause::TestTooShort => "With a longer test",
        Cause::LinkCapacity | Cause::RadioCapacity => "With more capacity",
    }
}

/// Whether settings against uplink access concern the UEs' reports, not their requests.
pub(crate) fn about_reports(edits: &[Edit]) -> bool {
    edits.iter().any(|edit| edit.key.name() == "assume_more")
}

/// Whether an edit switches off what it is about.
fn switches_off(edit: &Edit) -> bool {
    edit.key.name() == "enabled" && edit.setting == false.into()
}

/// What to do in the real network if no setting of the scenario does it.
pub(crate) const fn elsewhere(cause: Cause) -> &'static str {
    match cause {
        Cause::RandomLoss => "Find and repair whatever loses packets.",
        Cause::Policer => "Ask for a higher rate, or for a shaper instead of the policer.",
        Cause::Shaper => "Ask for a higher rate.",
        Cause::RadioLoss => {
            "Improve the coverage: another place, an outdoor antenna or a nearer cell."
        }
        Cause::ReceiveWindow | Cause::SendBuffer => "Give the flow larger buffers at both ends.",
        Cause::ApplicationLimited => "Make the application read and write faster.",
        Cause::KeptSsthresh => "Stop the sender from keeping the ssthresh of earlier connections.",
        Cause::ShortQueue => "Lengthen the queue, or pace at the sender.",
        Cause::Bufferbloat => "Use AQM in this queue, or shorten it.",
        Cause::Reordering => "Keep each flow on one path.",
        Cause::Mtu | Cause::Fragmentation => "Send smaller packets, or raise the MTU.",
        Cause::Vpn => "Give the VPN's device an MTU that leaves room for its headers.",
        Cause::Offload => "Switch this offload off.",
        Cause::OneWayPath => "Open the firewall for packets from outside.",
        Cause::NatBinding | Cause::DoubleNat => "Have the UE send keep-alives.",
        Cause::StallingHost => "Forward on a host with dedicated CPUs.",
        Cause::ReceiveRing => "Lengthen the receive ring, or pace at the sender.",
        Cause::HostProcessor => "Forward on a host that can handle more packets per second.",
        Cause::InterruptModeration => "Switch interrupt moderation off.",
        Cause::AggregationTimer => "Shorten the driver's aggregation timer.",
        Cause::ModemCeiling => "Let each bus transfer carry more packets.",
        Cause::Proxy => "Bypass the proxy.",
        Cause::CrossTraffic => "Move the other traffic off this path.",
        Cause::AckStarvation => "Raise the rate of the return path.",
        Cause::AckBatching => "Do not batch packets, or pace at the sender.",
        Cause::Drx => "Let the UE sleep less.",
        Cause::UplinkAccess => "Let the UE request uplink more often.",
        Cause::PdcpGap => "Use RLC AM, or shorten t-Reordering.",
        Cause::SplitBearer => "Use one leg, or split where both legs are equally fast.",
        Cause::RrcPromotion => "Keep the UE connected.",
        Cause::Handover => "Shorten the interruption of each handover.",
        Cause::CellOutage => "Keep the cell in service, or cover its area with another cell.",
        Cause::RadioLinkFailure => "Improve the coverage at the edge of the cell.",
        Cause::CongestionMix => {
            "Use the same congestion control algorithm for flows that share a queue, or give each flow its own queue."
        }
        Cause::Placement => "Place the server closer to the UE.",
        Cause::SlowStartExit | Cause::SlowStart | Cause::CongestionControl => {
            "Use another congestion control, or another kernel, at the sender."
        }
        Cause::TestTooShort => "Run a longer test.",
        Cause::EmulationHost => "Emulate on an otherwise idle machine.",
        Cause::LinkCapacity | Cause::RadioCapacity => "",
    }
}

#[cfg(test)]
mod tests {
    use airpath_scenario::KeyPath;

    use super::*;

    #[test]
    fn a_sentence_is_about_the_buffers_that_its_settings_raise() {
        let sentence = |edits: &[Edit]| {
            let buffers = Buffers::of(edits);
            (buffers.raise("call", 1, Some(65_536.0)), without(Cause::SendBuffer, 1, edits))
        };
        let flow = KeyPath::new("flow.0");
        let [send, receive, both] = ["send_buffer_bytes", "receive_buffer_bytes", "window_bytes"]
            .map(|key| flow.set(key, 65_536));
        let (raise, large) = sentence(std::slice::from_ref(&send));
        assert_eq!(
            raise,
            "Raise the send buffer of call to 65,536 bytes (net.ipv4.tcp_wmem, third value; SO_SNDBUF)."
        );
        assert_eq!(large, "With a large send buffer");
        let (raise, large) = sentence(&[receive.clone(), flow.set("options.window_scaling", true)]);
        assert!(raise.starts_with("Raise the receive buffer of call to 65,536 bytes"), "{raise}");
        assert_eq!(large, "With a large receive buffer");
        let receive_buffers = Buffers::Receive.raise("one and other", 2, None);
        assert!(receive_buffers.starts_with("Raise the receive buffers of one and other (net."));
        for edits in [&[send, receive][..], &[both]] {
            let (raise, large) = sentence(edits);
            assert!(raise.contains(" at both ends "), "{raise}");
            assert_eq!(large, "With large buffers at both ends");
        }
        let [send, receive] =
            ["send_window_bytes", "receive_window_bytes"].map(|key| flow.set(key, 65_536));
        for (edits, raised, wider) in [
            (std::slice::from_ref(&send), "send window of call", "a large send window"),
            (std::slice::from_ref(&receive), "receive window of call", "a large receive window"),
            (&[receive.clone(), send.clone()], "windows of call", "large windows at both ends"),
        ] {
            let (raise, large) = sentence(edits);
            assert!(raise.starts_with(&format!("Raise the {raised} to 65,536 bytes ")), "{raise}");
            assert!(raise.contains("QUIC") && !raise.contains("tcp"), "{raise}");
            assert_eq!(large, format!("With {wider}"));
        }
    }
}
