//! CUBIC with the slow start of a chosen generation, as congestion controls in the host's kernel.

use std::ffi::OsStr;

use libbpf_rs::{Link, MapCore, Object};

use crate::BpfError;
use crate::congestion::{MOST_LOADS, NAME_BYTES, is_registered};
use crate::object::{Elf, attempt, load};

static ELF: &Elf<[u8]> = &Elf(*include_bytes!(concat!(env!("OUT_DIR"), "/cubic.bpf.o")));

/// Prefix of every name.
const PREFIX: &[u8] = b"air_";

/// A generation of slow start, as in a scenario's `slow_start` and in docs/concepts/slow-start.md.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generation {
    /// No early exit: until a loss.
    None,
    /// Linux 4.19 up to 4.19.130.
    V4_19,
    /// Linux since 4.19.131: a falling minimum does not end slow start.
    V4_19_131,
    /// Like [`V4_19_131`](Self::V4_19_131), but the round's first acknowledgement belongs to the
    /// round.
    V4_19Both,
    /// Linux 5.6 and 5.7.
    V5_6,
    /// Linux 5.8 to 5.15.
    V5_8,
    /// Linux 5.16 to 6.13.
    V5_16,
    /// Linux since 6.14.
    V6_14,
    /// HyStart++ (RFC 9406).
    PlusPlus,
}

impl Generation {
    /// All generations that can be loaded, Linux's in the order of its versions.
    pub const ALL: [Self; 9] = [
        Self::None,
        Self::V4_19,
        Self::V4_19_131,
        Self::V4_19Both,
        Self::V5_6,
        Self::V5_8,
        Self::V5_16,
        Self::V6_14,
        Self::PlusPlus,
    ];

    /// Name in the kernel, if only one airpath has loaded it.
    pub const fn kernel_name(self) -> &'static str {
        match self {
            Self::None => "air_none",
            Self::V4_19 => "air_4.19",
            Self::V4_19_131 => "air_4.19.131",
            Self::V4_19Both => "air_4.19_both",
            Self::V5_6 => "air_5.6",
            Self::V5_8 => "air_5.8",
            Self::V5_16 => "air_5.16",
            Self::V6_14 => "air_6.14",
            Self::PlusPlus => "air_hystartpp",
        }
    }
}

/// All generations, registered until this is dropped or the process ends.
#[derive(Debug)]
pub struct Cubic {
    // Must be dropped before the object.
    _links: Vec<Link>,
    _object: Object,
    suffix: String,
}

impl Cubic {
    /// Registers all generations. `tick_us` is the length of a jiffy in microseconds.
    ///
    /// Names are shared by the whole machine: a second process appends `_2` to each of them.
    ///
    /// # Errors
    ///
    /// Without CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, or if the kernel has no BTF.
    pub fn load(tick_us: u32) -> Result<Self, BpfError> {
        for number in 1..MOST_LOADS {
            let suffix = if number == 1 { String::new() } else { format!("_{number}") };
            if is_taken(&suffix) {
                continue;
            }
            match Self::load_as(&suffix, tick_us) {
                // Another process was faster.
                Err(error) if error.is_taken() => {}
                done => return done,
            }
        }
        Self::load_as(&format!("_{MOST_LOADS}"), tick_us)
    }

    /// The name of a generation.
    pub fn name(&self, generation: Generation) -> String {
        format!("{}{}", generation.kernel_name(), self.suffix)
    }

    fn load_as(suffix: &str, tick_us: u32) -> Result<Self, BpfError> {
        let mut object = load(&ELF.0, |open| {
            for mut map in open.maps_mut() {
                let is_rodata = map.name().to_string_lossy().ends_with(".rodata");
                let Some(value) = map.initial_value_mut() else { continue };
                if is_rodata {
                    value[..4].copy_from_slice(&tick_us.to_ne_bytes());
                } else {
                    append(value, suffix);
                }
            }
            Ok(())
        })?;
        let is_generation = |name: &OsStr| !name.to_string_lossy().contains('.');
        let links = attempt("registering congestion controls", || {
            let maps = object.maps_mut().filter(|map| is_generation(map.name()));
            maps.map(|mut map| map.attach_struct_ops()).collect()
        })?;
        Ok(Self { _links: links, _object: object, suffix: suffix.to_owned() })
    }
}

/// Appends a suffix to the name in a `struct tcp_congestion_ops`.
fn append(value: &mut [u8], suffix: &str) {
    let Some(name) = value.windows(PREFIX.len()).position(|window| window == PREFIX) else {
        return;
    };
    let Some(room) = value.get_mut(name..name + NAME_BYTES) else { return };
    let length = room.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
    // The last byte stays zero.
    let free = room[..NAME_BYTES - 1].iter_mut().skip(length);
    free.zip(suffix.bytes()).for_each(|(to, from)| *to = from);
}

fn is_taken(suffix: &str) -> bool {
    is_registered(&format!("{}{suffix}", Generation::ALL[0].kernel_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_room_for_a_number() {
        for generation in Generation::ALL {
            let name = generation.kernel_name();
            assert!(name.len() + 2 < NAME_BYTES, "{name}");
            assert!(name.as_bytes().starts_with(PREFIX), "{name}");
            let mut value = [7; 40];
            value[8..24].fill(0);
            value[8..8 + name.len()].copy_from_slice(name.as_bytes());
            append(&mut value, "_2");
            let expected = format!("{name}_2\0");
            assert_eq!(&value[8..8 + expected.len()], expected.as_bytes());
            assert_eq!(value[23..], [[0].as_slice(), &[7; 16]].concat());
        }
    }
}
