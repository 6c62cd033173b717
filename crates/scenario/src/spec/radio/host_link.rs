//! `[radio.host_link]` and `[radio.host_link_up]`.

use super::super::stage::{
    CODEL_INTERVAL, CODEL_TARGET, FQ_CODEL_QUANTUM, FQ_CODEL_QUEUES, LinkAqm,
};
use super::super::{Chosen, Default, Group, Key, Kind, MS_FROM_0, Need, Table, Unit, count, or};

/// One direction of the link between a UE's radio and its host.
pub(super) static HOST_LINK: Table = Table {
    header: "[radio.host_link] and [radio.host_link_up]",
    path: "radio.host_link or radio.host_link_up or radio.ue.N.host_link",
    doc: "The link between a UE's radio and the host that runs its TCP: the USB link of a \
          tethered modem, the Ethernet port or the WLAN of a CPE, or a shaper in the CPE. Each UE \
          has its own. A downlink packet passes the queue, then the delay, and then \
          `host_delay_ms`; an uplink packet passes queue and delay before it enters the UE's \
          buffer.",
    selector: None,
    groups: &[Group::always(&[
        Key::new(
            "rate_mbps",
            or("unlimited", &Kind::Rate),
            Default::Value("\"unlimited\""),
            "Rate at which IP packets are sent, rounded to whole bits per second.",
        ),
        Key::new(
            "queue_packets",
            count(Unit::Packets, 1, u32::MAX as u64),
            Default::Absent("no limit in packets"),
            "Number of packets that may wait. The packet that is being sent does not count.",
        )
        .needs(LIMITED),
        Key::new(
            "queue_bytes",
            count(Unit::Bytes, 1, 1 << 50),
            Default::Absent("no limit in bytes"),
            "Number of bytes that may wait.",
        )
        .needs(LIMITED),
        Key::new(
            LinkAqm::KEY,
            Kind::Choice(LinkAqm::CHOICES),
            Default::Value("\"drop-tail\""),
            "Active queue management.",
        )
        .needs(LIMITED),
        CODEL_TARGET,
        CODEL_INTERVAL,
        FQ_CODEL_QUANTUM,
        FQ_CODEL_QUEUES,
        Key::new("delay_ms", MS_FROM_0, Default::Value("0"), "Delay of every packet."),
    ])],
};

const LIMITED: Need = Need::Not("rate_mbps", "unlimited");
