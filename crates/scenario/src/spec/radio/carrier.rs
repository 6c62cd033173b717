//! `[[radio.carrier]]`.

use super::super::{Default, Group, Key, Kind, Table};
use super::part;

/// A secondary carrier.
pub(crate) static CARRIER: Table = Table {
    header: "[[radio.carrier]]",
    path: "radio.carrier.N",
    doc: "Carrier aggregation (TS 36.300 5.5, TS 38.300 6.7): a secondary carrier of the first \
          cell, up to seven of them. It starts from its own preset, as a neighbour does, and has \
          its own bandwidth, slots, scheduler, channel, link adaptation and HARQ; a block is \
          retransmitted on the carrier on which it was sent. RLC and PDCP are the bearer's, and so \
          are the rate caps. Feedback, requests, random access and grants in advance are on the \
          primary carrier, `[radio.cell]`. The keys of UEs apply there; on a secondary carrier all \
          UEs have its tables, which take precedence over those of `[radio]`. A secondary carrier \
          is active whenever its UE is connected.",
    selector: None,
    groups: &[Group::always(&[
        Key::new(
            "preset",
            Kind::Preset,
            Default::Derived("that of `[radio]`"),
            "The built-in set of values that its tables start from, of the same `access`.",
        ),
        Key::new(
            "uplink",
            Kind::Flag,
            Default::Value("false"),
            "Whether UEs also send on it. Otherwise it carries downlink only.",
        ),
        part(
            "cell",
            "The carrier, with the keys of `[radio.cell]`. Processing times and `k0_slots` are \
                 those of the primary carrier.",
        ),
        part("channel", "The quality of the radio."),
        part("channel_up", "What differs in the uplink."),
        part("link_adaptation", "How the MCS is chosen."),
        part("link_adaptation_up", "What differs in the uplink."),
        part("harq", "HARQ."),
        part("harq_up", "What differs in the uplink."),
    ])],
};
