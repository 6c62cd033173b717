//! A user's congestion control, from an object file, in the host's kernel.

use libbpf_rs::btf::types::{DataSec, MemberAttr, Struct, Var};
use libbpf_rs::btf::{Btf, BtfType};
use libbpf_rs::{Link, MapCore, Object, OpenObject, ProgramType};

use crate::BpfError;
use crate::object::{attempt, load};

/// TCP_CA_NAME_MAX, including the terminating zero.
pub(crate) const NAME_BYTES: usize = 16;

/// Most controls of one name that a machine can have at once.
pub(crate) const MOST_LOADS: u32 = 9;

/// BPF_F_LINK (uapi/linux/bpf.h, Linux 6.4): a link registers the map, and its end removes it.
/// Without this flag the kernel would keep the control until somebody deletes it.
const LINK: u32 = 1 << 13;

/// The sections whose variables libbpf takes for structures of callbacks.
const SECTIONS: [&str; 4] =
    [".struct_ops.link", ".struct_ops", "?.struct_ops.link", "?.struct_ops"];

/// The kernel's structure of a congestion control (include/net/tcp.h).
const STRUCTURE: &str = "tcp_congestion_ops";

const NO_BTF: &str = "the object has no BTF: compile it with clang -g -target bpf";

/// A congestion control that is registered until this is dropped or the process ends.
#[derive(Debug)]
pub struct CongestionControl {
    // Must be dropped before the object.
    _link: Link,
    _object: Object,
    name: String,
}

/// Why an object did not become a congestion control.
#[derive(Debug)]
pub enum CongestionError {
    /// The object is not what it should be, whatever the kernel.
    Object(String),
    /// The kernel refused it.
    Kernel(BpfError),
}

impl From<BpfError> for CongestionError {
    fn from(error: BpfError) -> Self {
        Self::Kernel(error)
    }
}

/// A `struct tcp_congestion_ops` in an object.
#[derive(Debug)]
struct Found {
    /// The variable's name, which is that of its map.
    map: String,
    /// Offset of the member `name` in bytes.
    name_at: usize,
}

impl CongestionControl {
    /// Registers a congestion control of an object, which `name` chooses if there are several.
    ///
    /// Names are shared by the whole machine: if this one is in use, `_2` and so on is appended.
    /// Only the programs of this control are loaded, and nothing is attached or pinned.
    ///
    /// # Errors
    ///
    /// If the object has no such control, or the kernel refuses it.
    pub fn load(elf: &[u8], name: Option<&str>) -> Result<Self, CongestionError> {
        let all = found(elf)?;
        let mut names = Vec::new();
        // The names are data of the object, which libbpf finds by the variable.
        let open = crate::object::open(elf).map_err(not_an_object)?;
        for each in &all {
            names.push(name_in(&open, each)?);
        }
        drop(open);
        let listed = || names.join(", ");
        let index = match name {
            None if all.len() == 1 => 0,
            None => {
                let said =
                    "the object has several congestion control algorithms; name one as FILE:NAME";
                return Err(CongestionError::Object(format!("{said}: {}", listed())));
            }
            Some(wanted) => names.iter().position(|name| name == wanted).ok_or_else(|| {
                let said = format!("the object has no congestion control `{wanted}`, but");
                CongestionError::Object(format!("{said} {}", listed()))
            })?,
        };
        let (chosen, name) = (&all[index], &names[index]);
        for number in 1..=MOST_LOADS {
            let name = numbered(name, number);
            // One that is registered meanwhile by another process gives the kernel's error.
            if number < MOST_LOADS && is_registered(&name) {
                continue;
            }
            match Self::register(elf, chosen, &name) {
                Err(error) if error.is_taken() && number < MOST_LOADS => {}
                done => return Ok(done?),
            }
        }
        unreachable!("the last number returns")
    }

    /// Name in the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn register(elf: &[u8], chosen: &Found, name: &str) -> Result<Self, BpfError> {
        let mut object = load(elf, |open| {
            for mut map in open.maps_mut() {
                let is_chosen = map.name() == chosen.map.as_str();
                if is_chosen {
                    map.set_autocreate(true)?;
                    map.set_map_flags(LINK)?;
                    let value = map.initial_value_mut().and_then(|value| room(value, chosen));
                    if let Some(room) = value {
                        room.fill(0);
                        room[..name.len()].copy_from_slice(name.as_bytes());
                    }
                } else if map.map_type() == libbpf_rs::MapType::StructOps {
                    map.set_autocreate(false)?;
                }
            }
            for mut program in open.progs_mut() {
                if !matches!(program.prog_type(), ProgramType::StructOps) {
                    program.set_autoload(false);
                }
            }
            Ok(())
        })?;
        let link = attempt("registering the congestion control", || {
            let mut map = object.maps_mut().find(|map| map.name() == chosen.map.as_str());
            map.as_mut().expect("the map was there").attach_struct_ops()
        })?;
        Ok(Self { _link: link, _object: object, name: name.to_owned() })
    }
}

/// The congestion controls of an object.
fn found(elf: &[u8]) -> Result<Vec<Found>, CongestionError> {
    let object = |said: String| CongestionError::Object(said);
    let btf = attempt("reading the object", || Btf::from_raw("congestion", elf));
    let Some(btf) = btf.map_err(not_an_object)? else {
        return Err(object(NO_BTF.to_owned()));
    };
    if let Some(pinned) = pinned(&btf) {
        return Err(object(format!(
            "the map `{pinned}` of the object asks to be pinned, so it would outlive the run: \
             remove `pinning`"
        )));
    }
    let (mut all, mut others) = (Vec::new(), Vec::new());
    for (map, structure) in SECTIONS.iter().flat_map(|section| variables(&btf, section)) {
        let Some(structure) = structure else { continue };
        let kind = structure.name().unwrap_or_default().to_string_lossy().into_owned();
        // A flavour of CO-RE has `___` and more behind the name.
        if kind.split("___").next() != Some(STRUCTURE) {
            others.push(kind);
            continue;
        }
        let member = structure.iter().find(|member| member.name.is_some_and(|it| it == "name"));
        let Some(MemberAttr::Normal { offset }) = member.map(|member| member.attr) else {
            return Err(object(format!("the {STRUCTURE} `{map}` has no name")));
        };
        all.push(Found { map, name_at: offset as usize / 8 });
    }
    match (all.is_empty(), others.is_empty()) {
        (false, _) => Ok(all),
        (true, true) => Err(object(format!(
            "the object has no congestion control: a struct {STRUCTURE} in the section \
             .struct_ops.link"
        ))),
        (true, false) => Err(object(format!(
            "the object has no congestion control, but struct_ops of another kind: {}",
            others.join(", ")
        ))),
    }
}

/// The variables of a section, and their types if these are structures.
fn variables<'btf>(btf: &'btf Btf<'_>, section: &str) -> Vec<(String, Option<Struct<'btf>>)> {
    let Some(section) = btf.type_by_name::<DataSec<'_>>(section) else { return Vec::new() };
    let variable = |id| {
        let variable = btf.type_by_id::<Var<'_>>(id)?;
        let name = variable.name()?.to_string_lossy().into_owned();
        let structure = variable.next_type().map(|kind: BtfType<'_>| kind.skip_mods_and_typedefs());
        Some((name, structure.and_then(|kind| Struct::try_from(kind).ok())))
    };
    section.iter().filter_map(|entry| variable(entry.ty)).collect()
}

/// A map that libbpf would pin: its definition has a member `pinning`.
fn pinned(btf: &Btf<'_>) -> Option<String> {
    let pins = |structure: &Struct<'_>| {
        structure.iter().any(|member| member.name.is_some_and(|name| name == "pinning"))
    };
    let maps = variables(btf, ".maps").into_iter();
    maps.filter(|(_, kind)| kind.as_ref().is_some_and(pins)).map(|(name, _)| name).next()
}

fn not_an_object(error: BpfError) -> CongestionError {
    let cause = error.cause();
    // What libbpf says of struct_ops without types.
    CongestionError::Object(if cause.starts_with("BTF is required") {
        NO_BTF.to_owned()
    } else {
        format!("not a BPF object that libbpf can read: {cause}")
    })
}

/// The bytes of a structure that hold its name.
fn room<'value>(value: &'value mut [u8], found: &Found) -> Option<&'value mut [u8]> {
    value.get_mut(found.name_at..found.name_at + NAME_BYTES)
}

/// The name that the object gives a congestion control.
fn name_in(open: &OpenObject, found: &Found) -> Result<String, CongestionError> {
    let map = open.maps().find(|map| map.name() == found.map.as_str());
    let value = map.as_ref().and_then(|map| map.initial_value());
    let bytes = value.and_then(|value| value.get(found.name_at..found.name_at + NAME_BYTES));
    let bytes = bytes.unwrap_or_default();
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
    let name = String::from_utf8_lossy(&bytes[..length]).into_owned();
    // The characters that the kernel takes (bpf_obj_name_cpy).
    let valid = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '.';
    if name.is_empty() || length >= NAME_BYTES || !name.chars().all(valid) {
        let said = "is not one: 1 to 15 ASCII letters, digits, `_` and `.`";
        let map = &found.map;
        return Err(CongestionError::Object(format!("the name `{name}` of `{map}` {said}")));
    }
    Ok(name)
}

/// A name with a number, cut so that there is room for it.
fn numbered(name: &str, number: u32) -> String {
    if number == 1 {
        return name.to_owned();
    }
    let kept = name.len().min(NAME_BYTES - 3);
    format!("{}_{number}", &name[..kept])
}

/// Whether the kernel has a congestion control of that name, without loading a module for it.
pub(crate) fn is_registered(name: &str) -> bool {
    let there = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    there.unwrap_or_default().split_whitespace().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    static CUBIC: &crate::object::Elf<[u8]> =
        &crate::object::Elf(*include_bytes!(concat!(env!("OUT_DIR"), "/cubic.bpf.o")));
    static OBSERVER: &crate::object::Elf<[u8]> =
        &crate::object::Elf(*include_bytes!(concat!(env!("OUT_DIR"), "/observer.bpf.o")));

    fn said(elf: &[u8], name: Option<&str>) -> String {
        match CongestionControl::load(elf, name) {
            Err(CongestionError::Object(said)) => said,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_no_congestion_control_is_said() {
        assert!(said(b"int main(void);", None).starts_with("not a BPF object"));
        assert!(said(&[], None).starts_with("not a BPF object"));
        assert!(said(&OBSERVER.0, None).contains("no congestion control: a struct"));
        // Those of the template, of which a user may mean any.
        assert!(said(&CUBIC.0, None).ends_with("air_6.14, air_hystartpp"));
        assert!(said(&CUBIC.0, Some("cubic")).contains("no congestion control `cubic`, but air_"));
    }

    #[test]
    fn a_truncated_object_is_refused_at_every_length() {
        // In steps, as each is parsed twice.
        for length in (0..CUBIC.0.len()).step_by(97) {
            let said = said(&CUBIC.0[..length], Some("none of these"));
            assert!(!said.is_empty(), "{length}");
        }
    }

    #[test]
    fn a_number_fits_behind_every_name() {
        assert_eq!(numbered("bpf_cubic", 1), "bpf_cubic");
        assert_eq!(numbered("bpf_cubic", 2), "bpf_cubic_2");
        assert_eq!(numbered("fifteen_letters", 9), "fifteen_lette_9");
        assert!(numbered("fifteen_letters", 9).len() < NAME_BYTES);
    }
}
