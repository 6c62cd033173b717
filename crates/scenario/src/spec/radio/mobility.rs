//! `[[radio.neighbour]]`, `[[radio.handover]]`, `[[radio.outage]]` and `[radio.mobility]`.

use super::super::{
    Chosen, Default, ENABLED, Group, Key, Kind, MS_ABOVE_0, MS_FROM_0, Need, S_ABOVE_0, S_FROM_0,
    Table, Unit, count, real,
};
use super::{PART_KEYS, part};

/// Another cell.
pub(crate) static NEIGHBOUR: Table = Table {
    header: "[[radio.neighbour]]",
    path: "radio.neighbour.N",
    doc: "Another cell, into which UEs can move. It starts from its own preset. With the same \
          `access` as the first cell it uses the tables of `[radio]`, and its own tables take \
          precedence over those. Tables of single UEs apply only in the first cell. If the first \
          cell is LTE, an NR neighbour is the leg that is added and dropped (EN-DC): the bearer \
          is in one or the other.",
    selector: None,
    groups: &[
        Group::always(&[
            Key::new(
                "name",
                Kind::Name,
                Default::Derived("`cell-N`, N from 1"),
                "Unique name, used by handovers and in tables.",
            ),
            Key::new(
                "preset",
                Kind::Preset,
                Default::Derived("that of `[radio]`"),
                "The built-in set of values that its tables start from.",
            ),
            part("cell", "The cell, with the keys of `[radio.cell]`."),
        ]),
        Group::always(PART_KEYS),
    ],
};

/// A planned handover.
pub(crate) static HANDOVER: Table = Table {
    header: "[[radio.handover]]",
    path: "radio.handover.N",
    doc: "A change of cell at a fixed time. A UE that is already in that cell stays.",
    selector: None,
    groups: &[Group::always(&[
        Key::new(
            "at_s",
            S_FROM_0,
            Default::Required,
            "When the UE gets the command. A UE that is between two cells goes as soon as it \
                 can.",
        ),
        Key::new(
            "every_s",
            S_ABOVE_0,
            Default::Absent("once"),
            "Period with which the \
                                                                     handover is repeated.",
        ),
        Key::new("ue", Kind::Name, Default::Absent("all"), "Name of the UE."),
        Key::new("to", Kind::Name, Default::Required, "Name of the cell that the UE goes to."),
    ])],
};

/// A time without service.
pub(crate) static OUTAGE: Table = Table {
    header: "[[radio.outage]]",
    path: "radio.outage.N",
    doc: "A time in which a cell is out of service: nothing that it or its UEs send arrives. \
          Afterwards it is as it would have been without it. What its UEs do meanwhile follows from \
          `[radio.mobility]`.",
    selector: None,
    groups: &[Group::always(&[
        ENABLED,
        Key::new("at_s", S_FROM_0, Default::Required, "When the cell goes out of service."),
        Key::new(
            "duration_s",
            S_ABOVE_0,
            Default::Required,
            "How long the cell stays out of service.",
        ),
        Key::new("cell", Kind::Name, Default::Absent("all"), "Name of the cell."),
    ])],
};

const DECIBELS: Kind = real("dB", -30.0, 30.0);

/// How UEs move.
pub(crate) static MOBILITY: Table = Table {
    header: "[radio.mobility]",
    path: "radio.mobility",
    doc: "How a change of cell takes place (TS 36.300 10.1.2.1, TS 38.300 9.2.3.2), and what UEs \
          measure and report. Without this table, without neighbours and without handovers a UE \
          stays in its cell and keeps a link that has failed.",
    selector: None,
    groups: &[
        Group::always(&[
            Key::new(
                "interruption_ms",
                MS_FROM_0,
                Default::Value("50"),
                "Time from the command until the UE can send and receive in the target, \
                     random access included (TR 36.881 5.2.2: about 49.5 ms). It is not less than \
                     `forwarding_delay_ms`.",
            ),
            Key::new(
                "preparation_ms",
                MS_FROM_0,
                Default::Value("50"),
                "Time from a measurement report to the command. Data continues to flow.",
            ),
            Key::new(
                DataForwarding::KEY,
                Kind::Choice(DataForwarding::CHOICES),
                Default::Value("\"all\""),
                "What the old base station does with downlink packets.",
            ),
            Key::new(
                "forwarding_delay_ms",
                MS_FROM_0,
                Default::Value("5"),
                "Delay between the base stations (X2, Xn).",
            ),
            Key::new(
                "path_switch_ms",
                MS_FROM_0,
                Default::Value("20"),
                "Time from the UE's arrival until the core sends to the target.",
            ),
            Key::new(
                "measurement_period_ms",
                MS_ABOVE_0,
                Default::Value("40"),
                "Time between two measurements of all cells.",
            ),
        ]),
        Group::always(&[
            Key::new(
                "a3",
                Kind::Flag,
                Default::Derived(
                    "true with neighbours, without `[[radio.handover]]` and `[radio.split]`",
                ),
                "Whether UEs start in the best cell and move by event A3: the SINR of a \
                     neighbour is better than that of the serving cell (TS 36.331 and TS 38.331 \
                     5.5.4.4).",
            ),
            Key::new("a3_offset_db", DECIBELS, Default::Value("3"), "a3-Offset.").needs(A3),
            Key::new(
                "a3_hysteresis_db",
                real("dB", 0.0, 15.0),
                Default::Value("1"),
                "Hysteresis of event A3: the event begins this much above the offset, and \
                     ends this much below it.",
            )
            .needs(A3),
            Key::new(
                "time_to_trigger_ms",
                MS_FROM_0,
                Default::Value("160"),
                "timeToTrigger: how long the neighbour has to be better.",
            )
            .needs(A3),
            Key::new(
                "filter_coefficient",
                count(Unit::Plain, 0, 19),
                Default::Value("4"),
                "k of the layer 3 filter. Samples are 200 ms apart, and the newest has the \
                     weight 2^(-k/4) (TS 36.331, TS 38.331 5.5.3.2).",
            )
            .needs(A3),
        ]),
        Group::always(&[
            Key::new(
                "link_failure",
                Kind::Flag,
                Default::Derived("true without `[radio.split]`"),
                "Whether a link can fail: by T310, or when RLC reaches its largest number of \
                     retransmissions (TS 36.331 5.3.11, TS 38.331 5.3.10). The UE then connects \
                     again in the best cell.",
            ),
            Key::new(
                "q_out_db",
                DECIBELS,
                Default::Value("-8"),
                "A measurement below this SINR is out of sync (TR 36.839 5.2.1.3).",
            )
            .needs(FAILS),
            Key::new(
                "q_in_db",
                DECIBELS,
                Default::Value("-6"),
                "A measurement above this SINR is in sync (TR 36.839 5.2.1.3).",
            )
            .needs(FAILS),
            Key::new(
                "n310",
                count(Unit::Plain, 1, 20),
                Default::Value("1"),
                "Number of consecutive measurements out of sync that start T310.",
            )
            .needs(FAILS),
            Key::new(
                "n311",
                count(Unit::Plain, 1, 10),
                Default::Value("1"),
                "Number of consecutive measurements in sync that stop T310.",
            )
            .needs(FAILS),
            Key::new(
                "t310_ms",
                MS_FROM_0,
                Default::Value("1000"),
                "T310. When it expires, \
                                                                        the link has failed.",
            )
            .needs(FAILS),
            Key::new(
                "t304_ms",
                MS_FROM_0,
                Default::Value("500"),
                "T304: time after the command until a handover to a cell that is out of sync \
                     has failed.",
            )
            .needs(FAILS),
            Key::new(
                "reestablishment_ms",
                MS_ABOVE_0,
                Default::Value("200"),
                "Time from a failure until the UE is connected again (assumed). While no cell \
                     is in sync, the UE tries again after each such time.",
            )
            .needs(FAILS),
        ]),
    ],
};

const A3: Need = Need::On("a3");
const FAILS: Need = Need::On("link_failure");

choices! {
    /// Values of `forwarding`.
    DataForwarding("forwarding") {
        All = "all":
            "Packets that wait there or still arrive are forwarded. In AM nothing is lost (TS \
             38.300 9.2.3.2.2).",
        None = "none": "Packets are lost until the path is switched.",
    }
}
