//! `[radio]`, `[[radio.ue]]` and `[[radio.neighbour]]`: which tables they hold. The tables
//! themselves are in the submodules; their keys depend on the cell's `access`.

mod access;
mod bearer;
mod carrier;
mod cell;
mod channel;
mod host_link;
mod link;
mod mobility;
mod split;
mod state;

pub(crate) use access::{BsrPiggyback, BsrRegular, GrantRequests};
pub(crate) use bearer::{BufferAqm, RlcMode};
pub(crate) use carrier::CARRIER;
pub(crate) use cell::{
    AccessKind, BlerCurve, CELL, Duplex, Frequencies, LteMcsTable, NrMcsTable, Scheduler, UmtsDown,
    UmtsUp,
};
pub(crate) use channel::{
    ChannelModel, Fading, MissingValue, PathLossModel, SignalColumn, TraceEnd,
};
pub(crate) use link::HarqCombining;
pub(crate) use mobility::{DataForwarding, HANDOVER, MOBILITY, NEIGHBOUR, OUTAGE};
pub(crate) use split::{PrimaryPath, SPLIT};
pub(crate) use state::{InitialRrc, InitialUmts, UmtsSetup};

use super::{Default, Group, Key, Kind, MS, Table, TimeUnit, Unit, count};

/// A table that `[radio]` gives for all UEs, and `[[radio.ue]]` for its own.
pub(crate) struct Part {
    /// The table's key.
    pub(crate) name: &'static str,
    /// The table itself.
    pub(crate) table: &'static Table,
    /// For a table about both directions: the key of the table with what differs in the uplink.
    pub(crate) up: Option<&'static str>,
}

/// All parts, in canonical order.
pub(crate) static PARTS: &[Part] = &[
    Part { name: "channel", table: &channel::CHANNEL, up: Some("channel_up") },
    Part { name: "link_adaptation", table: &link::LINK_ADAPTATION, up: Some("link_adaptation_up") },
    Part { name: "harq", table: &link::HARQ, up: Some("harq_up") },
    Part { name: "rlc", table: &bearer::RLC, up: Some("rlc_up") },
    Part { name: "sr", table: &access::SR, up: None },
    Part { name: "bsr", table: &access::BSR, up: None },
    Part { name: "grants", table: &access::GRANTS, up: None },
    Part { name: "rach", table: &access::RACH, up: None },
    Part { name: "time_alignment", table: &access::TIME_ALIGNMENT, up: None },
    Part { name: "drx", table: &state::DRX, up: None },
    Part { name: "rrc", table: &state::RRC, up: None },
    Part { name: "ambr", table: &link::AMBR, up: None },
    Part { name: "processing", table: &state::PROCESSING, up: None },
    Part { name: "host_link", table: &host_link::HOST_LINK, up: Some("host_link_up") },
];

/// `[radio]`.
pub(crate) static RADIO: Table = Table {
    header: "[radio]",
    path: "radio",
    doc: "A cell and its UEs. The preset gives every value that the file does not give. A table \
          of a direction (`channel`, `link_adaptation`, `harq`, `rlc`, `host_link`) applies to \
          both directions; the table with `_up` has what differs in the uplink. A UE's own tables \
          take precedence over those of `[radio]`, and those over the preset's. Within each, the \
          table with `_up` takes precedence for the uplink.",
    selector: None,
    groups: &[
        Group::always(&[
            Key::new(
                "preset",
                Kind::Preset,
                Default::Required,
                "The built-in set of values that all tables start from.",
            ),
            Key::new(
                "name",
                Kind::Name,
                Default::Value("\"cell-0\""),
                "Name of the cell, used by handovers and in tables.",
            ),
            Key::new(
                "any_timer_value",
                Kind::Flag,
                Default::Value("false"),
                "Whether timers and counters of RRC may have values that TS 36.331 and TS \
                     38.331 do not list.",
            ),
            Key::new(
                "host_delay_ms",
                HOST_TIME,
                Default::Value("0"),
                "Time from a UE's radio to its TCP: interrupt, driver, wake-up, or the USB of \
                     a tethered modem. In a simulation nothing else in the UE's host takes time, \
                     and a packet that arrives in a slot is answered before the slot's end. In an \
                     emulation this adds to the machine's own time.",
            ),
            Key::new(
                "host_jitter_ms",
                HOST_TIME,
                Default::Value("0"),
                "Mean of an exponential time that is added to `host_delay_ms`. All packets of \
                     a slot get the same one, and the order is kept.",
            ),
            part("cell", "The cell: `[radio.cell]`."),
        ]),
        Group::always(PART_KEYS),
        Group::always(HOST_KEYS),
        Group::always(&[
            Key::new(
                "ue",
                Kind::List,
                Default::Absent("one, `ue-0`, with the tables of `[radio]`"),
                "The UEs: `[[radio.ue]]`.",
            ),
            Key::new(
                "carrier",
                Kind::List,
                Default::Absent("none"),
                "Secondary carriers of the cell: `[[radio.carrier]]`.",
            ),
            Key::new(
                "neighbour",
                Kind::List,
                Default::Absent("none"),
                "Other cells: `[[radio.neighbour]]`.",
            ),
            Key::new(
                "handover",
                Kind::List,
                Default::Absent("none at fixed times"),
                "Changes of cell: `[[radio.handover]]`.",
            ),
            Key::new(
                "outage",
                Kind::List,
                Default::Absent("none"),
                "Cells out of service: `[[radio.outage]]`.",
            ),
            Key::new(
                "mobility",
                Kind::Table,
                Default::Absent("without neighbours no UE moves"),
                "How UEs move: `[radio.mobility]`.",
            ),
            Key::new(
                "split",
                Kind::Table,
                Default::Absent("a bearer is in one cell at a time"),
                "Bearers over two cells: `[radio.split]`.",
            ),
        ]),
    ],
};

/// `[[radio.ue]]`.
pub(crate) static UE: Table = Table {
    header: "[[radio.ue]]",
    path: "radio.ue.N",
    doc: "A UE with one bearer, or several equal UEs. Its own tables take precedence over those \
          of `[radio]`.",
    selector: None,
    groups: &[
        Group::always(&[
            Key::new(
                "name",
                Kind::Name,
                Default::Derived("`ue-N`, N its position in the file"),
                "Unique name, used by flows and in tables.",
            ),
            Key::new(
                "count",
                count(Unit::Plain, 1, 10_000),
                Default::Absent("one of this name"),
                "Number of equal UEs. They are named NAME-0, NAME-1 and so on.",
            ),
            Key::new(
                "carriers",
                count(Unit::Plain, 0, 7),
                Default::Absent("all"),
                "How many of the cell's secondary carriers the UE uses, the first ones.",
            ),
        ]),
        Group::always(&[
            Key::new(
                "host_delay_ms",
                HOST_TIME,
                Default::Absent("that of `[radio]`"),
                "`host_delay_ms` of this UE.",
            ),
            Key::new(
                "host_jitter_ms",
                HOST_TIME,
                Default::Absent("that of `[radio]`"),
                "`host_jitter_ms` of this UE.",
            ),
        ]),
        super::subscription::USIM,
        Group::always(PART_KEYS),
        Group::always(HOST_KEYS),
    ],
};

/// A delay between a UE's radio and its TCP.
const HOST_TIME: Kind = Kind::Time { unit: TimeUnit::Ms, min_ns: 0, max_ns: 1_000 * MS };

const PART_KEYS: &[Key] = &[
    part("channel", "The quality of the radio."),
    part("channel_up", "What differs in the uplink."),
    part("link_adaptation", "How the MCS is chosen."),
    part("link_adaptation_up", "What differs in the uplink."),
    part("harq", "HARQ."),
    part("harq_up", "What differs in the uplink."),
    part("rlc", "The bearer: RLC, PDCP and its buffer."),
    part("rlc_up", "What differs in the uplink."),
    part("sr", "Scheduling request."),
    part("bsr", "Buffer status report."),
    part(
        "grants",
        "What the base station grants without a request, and what it grants for a \
                    request.",
    ),
    part("rach", "Random access."),
    part("time_alignment", "Time alignment."),
    part("drx", "Discontinuous reception."),
    part("rrc", "RRC states."),
    part("ambr", "Rate caps of the UE."),
    part("processing", "Processing times of the UE."),
];

/// Tables that a UE has only once, whichever cell it is in.
const HOST_KEYS: &[Key] = &[
    part("host_link", "The link between the UE's radio and its host."),
    part("host_link_up", "What differs in the uplink."),
];

const fn part(name: &'static str, doc: &'static str) -> Key {
    Key::new(name, Kind::Table, Default::Absent("the preset's"), doc)
}

const NR: &[&str] = &["nr"];
const LTE: &[&str] = &["lte"];
/// Technologies whose base station schedules the uplink.
const NR_LTE: &[&str] = &["nr", "lte"];
const UMTS: &[&str] = &["umts"];
const EVDO: &[&str] = &["evdo"];
/// Technologies whose UEs have a dedicated uplink channel.
const UMTS_EVDO: &[&str] = &["umts", "evdo"];
/// Technologies whose UEs are either connected or not.
const NR_LTE_EVDO: &[&str] = &["nr", "lte", "evdo"];
