//! `[core]`, and what a UE's USIM holds.

use super::{Default, Group, Key, Kind, MS, Privacy, Rule, Table, TimeUnit};

/// Up to a minute: somebody waits for it.
const STEP: Kind = Kind::Time { unit: TimeUnit::Ms, min_ns: 0, max_ns: 60_000 * MS };

/// `[core]`.
pub(crate) static CORE: Table = Table {
    header: "[core]",
    path: "core",
    doc: "A core network that lets in only whom it knows: with `airpath emulate`, each UE attaches \
          and gets a session before anything else happens. A simulation does not read it: there \
          every UE is attached.",
    selector: None,
    groups: &[Group {
        variants: &[],
        rule: Rule::Each,
        keys: &[
            Key::new(
                "subscribers",
                Kind::File,
                Default::Required,
                "Database of the subscribers, made by `airpath subscriber add`; a relative file is \
                 in the scenario's directory, one of a shipped scenario in the current one.",
            ),
            Key::new(
                "keys",
                Kind::File,
                Default::Absent("none: the UEs have them"),
                "File with the keys of the UEs, one a line: IMSI, K and OPc; \"-\" is standard \
                 input. Where a UE has a hash, the file's key must have that hash. Found as \
                 `subscribers` is; a resolved scenario does not name it.",
            )
            .private(Privacy::Place),
            Key::new(
                "pool",
                Kind::Text,
                Default::Value("\"10.45.0.0/24\""),
                "IPv4 network of the UEs' addresses; the first address is the gateway's.",
            ),
            Key::new(
                "apn",
                Kind::Name,
                Default::Value("\"internet\""),
                "The data network there is: the APN of LTE, the DNN of NR.",
            ),
            Key::new(
                "rrc_setup_ms",
                STEP,
                Default::Value("50"),
                "From idle until the RRC connection is there (TR 36.912 B.1.1.1 has 50 ms).",
            ),
            Key::new(
                "attach_ms",
                STEP,
                Default::Value("200"),
                "Attach (LTE) or registration (NR), with authentication and security mode \
                 (assumed).",
            ),
            Key::new(
                "session_ms",
                STEP,
                Default::Value("100"),
                "Default bearer (LTE) or PDU session (NR), radio bearer included (assumed).",
            ),
        ],
    }],
};

/// Of `[[radio.ue]]`.
pub(super) const USIM: Group = Group {
    variants: &[],
    rule: Rule::Each,
    keys: &[
        Key::new(
            "imsi",
            Kind::Text,
            Default::Absent("none: needed with `[core]`"),
            "Who it is: 14 or 15 digits, MCC and MNC first (TS 23.003 2.2).",
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
            "The data network that it asks for.",
        ),
    ],
};
