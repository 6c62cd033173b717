//! `[core]`, and the contents of a UE's USIM.

use super::{Default, Group, Key, Kind, MS, Privacy, Table, TimeUnit};

/// Duration of a step, up to a minute: somebody waits for it.
const STEP: Kind = Kind::Time { unit: TimeUnit::Ms, min_ns: 0, max_ns: 60_000 * MS };

/// `[core]`.
pub(crate) static CORE: Table = Table {
    header: "[core]",
    path: "core",
    doc: "A core network that admits only known subscribers. With `airpath emulate`, each UE \
          attaches and gets a session before anything else happens. A simulation ignores this \
          table: there every UE is attached.",
    selector: None,
    groups: &[Group::always(&[
        Key::new(
            "subscribers",
            Kind::File,
            Default::Required,
            "Database of the subscribers, created by `airpath subscriber add`. A relative \
                 file name is relative to the scenario's directory, or for a shipped scenario to \
                 the current directory.",
        ),
        Key::new(
            "keys",
            Kind::File,
            Default::Absent("none: the UEs have them"),
            "File with the keys of the UEs: a line with IMSI, K and OPc for each. \"-\" means \
                 standard input. Where a UE has a hash, the key in the file must have that hash. \
                 A relative file name is resolved as for `subscribers`. A resolved scenario does \
                 not name the file.",
        )
        .private(Privacy::Location),
        Key::new(
            "pool",
            Kind::Text,
            Default::Value("\"10.45.0.0/24\""),
            "IPv4 network of the UEs' addresses. The gateway has the first address.",
        ),
        Key::new(
            "apn",
            Kind::Name,
            Default::Value("\"internet\""),
            "Name of the data network: the APN of LTE, the DNN of NR.",
        ),
        Key::new(
            "rrc_setup_ms",
            STEP,
            Default::Value("50"),
            "Time from idle until the RRC connection exists (50 ms in TR 36.912 B.1.1.1).",
        ),
        Key::new(
            "attach_ms",
            STEP,
            Default::Value("200"),
            "Time for attach (LTE) or registration (NR), with authentication and security \
                 mode (assumed).",
        ),
        Key::new(
            "session_ms",
            STEP,
            Default::Value("100"),
            "Time for the default bearer (LTE) or the PDU session (NR), radio bearer included \
                 (assumed).",
        ),
    ])],
};

/// The USIM keys of `[[radio.ue]]`.
pub(super) const USIM: Group = Group::always(&[
    Key::new(
        "imsi",
        Kind::Text,
        Default::Absent("none: needed with `[core]`"),
        "IMSI of the UE: 14 or 15 digits, MCC and MNC first (TS 23.003 2.2).",
    ),
    Key::new(
        "key",
        Kind::Text,
        Default::Absent("that of `core.keys`"),
        "K of its USIM: 32 hexadecimal digits (TS 33.102 6.3.7), or its hash as a run writes it.",
    )
    .private(Privacy::Secret),
    Key::new(
        "opc",
        Kind::Text,
        Default::Absent("that of `core.keys`"),
        "OPc of its USIM: 32 hexadecimal digits (TS 35.206 4.1), or its hash as a run writes it.",
    )
    .private(Privacy::Secret),
    Key::new(
        "apn",
        Kind::Name,
        Default::Absent("that of `[core]`"),
        "The data network that the UE requests.",
    ),
]);
