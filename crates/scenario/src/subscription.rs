//! Checks that `[core]` and the identities of UEs fit together.

use std::net::Ipv4Addr;
use std::path::Path;

use crate::Origin;
use crate::node::Node;
use crate::problem::Problems;
use crate::radio::Radio;
use crate::read::Fields;
use crate::secret::is_hash;
use crate::spec::{AccessKind, CORE};

/// Keys of a USIM.
const USIM: [&str; 4] = ["imsi", "key", "opc", "apn"];

/// `[core]`, checked.
pub(crate) struct Core {
    pub(crate) fields: Fields,
    /// The file of subscribers, relative to the scenario.
    pub(crate) file: String,
    /// The file with the UEs' keys.
    pub(crate) keys: Option<String>,
}

/// Reads `[core]`, if the file has it, and checks the UEs' identities.
pub(crate) fn read(
    root: &Node,
    directory: Option<&Path>,
    radio: Option<&Radio>,
    problems: &mut Problems,
) -> Option<Core> {
    let ues = radio.map_or(&[][..], |radio| &radio.ues);
    if root.get("core").is_none() {
        for ue in ues {
            if let Some(key) = USIM.iter().find(|key| ue.fields.given(key).is_some()) {
                problems.add_with_help(
                    ue.fields.origin_of(key),
                    format!("`{key}` needs a core network that uses it"),
                    "add [core] with `subscribers`, or remove it",
                );
            }
        }
        return None;
    }
    let (origin, entries) = root.table("core", CORE.header, problems);
    let mut core = Fields::read(&CORE, CORE.header, origin, entries, problems);
    core.complete(problems);
    check_radio(&core, root, radio, problems);
    if let Some(pool) = core.text("pool")
        && network(pool).is_none()
    {
        problems.add_with_help(
            core.origin_of("pool"),
            format!("`pool` is \"{pool}\", but must be an IPv4 network"),
            "allowed: a network address with a prefix of 16 to 30 bits, e.g. \"10.45.0.0/24\"; not 10.77.0.0/24, \
             10.78.0.0/24 or 100.127.0.0/16, which other nodes use",
        );
    }
    for (index, ue) in ues.iter().enumerate() {
        let others = ues[..index].iter().map(|other| &other.fields);
        check_usim(&ue.fields, others, problems);
    }
    let file = core.text("subscribers").unwrap_or_default();
    let beside = |file: &str| directory.unwrap_or(Path::new("")).join(file).display().to_string();
    let keys = core.text("keys").map(|file| if file == "-" { file.into() } else { beside(file) });
    let file = beside(file);
    Some(Core { fields: core, file, keys })
}

fn check_radio(core: &Fields, root: &Node, radio: Option<&Radio>, problems: &mut Problems) {
    let Some(radio) = radio else {
        if root.get("radio").is_none() {
            problems.add_with_help(
                &core.origin,
                "[core] needs a radio, through which UEs attach",
                "add [radio] with a preset, or remove [core]",
            );
        }
        return;
    };
    if !matches!(radio.cell.selected(), Some(AccessKind::Lte | AccessKind::Nr)) {
        problems.add_with_help(
            &core.origin,
            "[core] is the core network of LTE and NR",
            "choose an LTE or NR preset, or remove [core]",
        );
    }
}

/// Address and prefix length; `None` if a host bit is set, or if the network may not be assigned.
pub(crate) fn network(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (address, prefix) = text.split_once('/')?;
    let (address, prefix): (Ipv4Addr, u8) = (address.parse().ok()?, prefix.parse().ok()?);
    let apart = TAKEN.iter().all(|&(taken, bits)| {
        let shorter = prefix.min(bits);
        part(address, shorter) != part(Ipv4Addr::from(taken), shorter)
    });
    let ours = address.octets()[0] != 0 && !address.is_loopback() && !address.is_multicast();
    let whole = (16..=30).contains(&prefix) && part(address, prefix) == u32::from(address);
    (whole && apart && ours).then_some((address, prefix))
}

/// Networks in use by the server, the tunnel's ends and the NATs.
const TAKEN: [([u8; 4], u8); 3] =
    [([10, 77, 0, 0], 24), ([10, 78, 0, 0], 24), ([100, 127, 0, 0], 16)];

/// The first bits of an address.
fn part(address: Ipv4Addr, bits: u8) -> u32 {
    u32::from(address) & u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)
}

fn check_usim<'a>(
    ue: &Fields,
    mut others: impl Iterator<Item = &'a Fields>,
    problems: &mut Problems,
) {
    if let Some(origin) = ue.given("count") {
        problems.add_with_help(
            origin,
            "with [core] each UE needs its own identity",
            "write one [[radio.ue]] per UE, without `count`",
        );
    }
    let mut need = |key: &str, expected: &str, right: &dyn Fn(&str) -> bool| {
        match ue.text(key) {
            // The keys may be in a file, which the attach requires.
            None if ue.is_there(key) || key != "imsi" => {}
            None => problems.add_with_help(
                &ue.origin,
                format!("[core] needs the `{key}` of this UE"),
                format!("give {expected} in [[radio.ue]]"),
            ),
            // The value may be a secret: do not quote it.
            Some(text) if !right(text) => {
                problems.add(ue.origin_of(key), format!("`{key}` must be {expected}"));
            }
            Some(_) => {}
        }
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    need("imsi", "14 or 15 digits", &|text| (14..=15).contains(&text.len()) && digits(text));
    let digits = |text: &str| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let key = |text: &str| digits(text) || is_hash(text);
    need("key", "32 hexadecimal digits", &key);
    need("opc", "32 hexadecimal digits", &key);
    if let (Some(imsi), Some(twin)) = (
        ue.text("imsi"),
        others.find(|other| other.text("imsi").is_some() && other.text("imsi") == ue.text("imsi")),
    ) {
        problems.add_with_help(
            ue.origin_of("imsi"),
            format!("two UEs have the IMSI {imsi}"),
            format!("the other one is at {}", twin.origin_of("imsi")),
        );
    }
}

/// Checks that GTP-U begins and ends at the base station of an LTE or NR cell.
pub(crate) fn check_gtpu(
    emulation: &Fields,
    root: &Node,
    radio: Option<&Radio>,
    problems: &mut Problems,
) {
    if emulation.flag("gtpu") != Some(true) {
        return;
    }
    let origin: &Origin = emulation.origin_of("gtpu");
    match radio {
        None if root.get("radio").is_none() => problems.add_with_help(
            origin,
            "`gtpu` needs a radio: the tunnel ends at the base station",
            "add [radio] with a preset, or remove `gtpu`",
        ),
        Some(radio) if !matches!(radio.cell.selected(), Some(AccessKind::Lte | AccessKind::Nr)) => {
            problems.add(
                origin,
                "`gtpu` is the tunnel of S1-U (LTE) or N3 (NR): the radio must be LTE or NR",
            )
        }
        _ => {}
    }
}
