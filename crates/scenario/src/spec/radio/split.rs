//! `[radio.split]`.

use super::super::{Chosen, Default, Group, Key, Kind, MS_FROM_0, Table, Unit, count, or};

/// A split bearer.
pub(crate) static SPLIT: Table = Table {
    header: "[radio.split]",
    path: "radio.split",
    doc: "Dual connectivity (EN-DC, NR-DC; TS 37.340): a UE's bearer is split over the first cell \
          and a neighbour. One PDCP entity numbers the packets; each cell has an RLC entity with \
          its own buffer, HARQ and procedures, as `[radio]` and `[[radio.neighbour]]` set them. \
          The receiver puts the packets in order, and waits for t-Reordering if \
          one is missing. UEs with a split bearer stay in both cells and do not \
          fail: `a3` and `link_failure` are false, and there are no handovers.",
    selector: None,
    groups: &[Group::always(&[
        Key::new(
            "enabled",
            Kind::Flag,
            Default::Value("true"),
            "False leaves the bearer in the first cell.",
        ),
        Key::new(
            "secondary",
            Kind::Name,
            Default::Derived("the first neighbour"),
            "Name of the neighbour with the second leg. PDCP is in the first cell's base \
                 station.",
        ),
        Key::new(
            "ue",
            Kind::Name,
            Default::Absent("all"),
            "Name of the UE whose bearer is split. Others are in the first cell.",
        ),
        Key::new(
            "secondary_share",
            or("shortest-wait", &Kind::Fraction),
            Default::Value("\"shortest-wait\""),
            "Fraction of the bytes that the transmitter gives to the secondary leg; TS 38.323 \
                 leaves the choice to it. With \"shortest-wait\" a packet gets the leg in which it \
                 will wait less, judged by what waits there and by how fast it left during the last \
                 tens of milliseconds; if both are equally good, the primary path.",
        ),
        Key::new(
            PrimaryPath::KEY,
            Kind::Choice(PrimaryPath::CHOICES),
            Default::Value("\"master\""),
            "primaryPath (TS 38.331 PDCP-Config).",
        ),
        Key::new(
            "ul_data_split_threshold_bytes",
            or("infinity", &count(Unit::Bytes, 0, 1 << 40)),
            Default::Value("\"infinity\""),
            "ul-DataSplitThreshold: while less than this waits, the uplink uses only the \
                 primary path (TS 38.323 5.2.1).",
        ),
        Key::new(
            "t_reordering_ms",
            MS_FROM_0,
            Default::Value("100"),
            "t-Reordering of the split bearer's PDCP (TS 38.323 7.3): how long a gap delays \
                 the packets after it. It replaces that of NR's `[radio.rlc]`.",
        )
        .values_of("t-Reordering"),
        Key::new(
            "delay_ms",
            MS_FROM_0,
            Default::Value("0"),
            "Delay between PDCP and the secondary leg: X2, Xn or F1. 0: both legs are in one \
                 base station.",
        ),
        Key::new(
            "flow_control",
            Kind::Flag,
            Default::Value("true"),
            "Whether PDCP knows how much a leg's buffer can take (TS 38.425 5.4.2): a packet \
                 for which it has no room is dropped before it has a COUNT. False: the leg drops \
                 it, and the receiver waits for it until t-Reordering expires.",
        ),
    ])],
};

choices! {
    /// Values of `primary_path`.
    PrimaryPath("primary_path") {
        Master = "master": "The first cell.",
        Secondary = "secondary": "The secondary leg.",
    }
}
