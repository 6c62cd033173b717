//! Chooses the kernel's congestion control for a flow, including CUBIC's slow start.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use airpath_scenario::SlowStartOf;
use airpath_tcp::{CongestionConfig, EarlyExit, EndpointConfig, HystartConfig, RoundStart};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, ipproto, socket, sockopt};
use serde::Serialize;

use crate::EmuError;
use crate::observation::observer::know_congestion;

/// A congestion control that a user chose for the flows of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The flow that it is for; `None`: all that have no choice of their own.
    pub flow: Option<String>,
    /// Where it comes from.
    pub source: Source,
}

/// Where a congestion control comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// The host has it, under that name.
    Host(String),
    /// A BPF object has it.
    Object {
        /// The file's name, for messages and results.
        file: String,
        /// The file's SHA-256 in hexadecimal, for results.
        sha256: String,
        /// The file's content.
        elf: Arc<[u8]>,
        /// The name of the congestion control, if the object has several.
        name: Option<String>,
    },
}

/// A congestion control that a user chose, as it was used.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChosenCongestion {
    /// The flow that it is for; null: all that have no choice of their own, and programs.
    pub flow: Option<String>,
    /// Name in the kernel. It differs from that in the object if that one was in use.
    pub name: String,
    /// The object file; null: it is one of the host's.
    pub file: Option<String>,
    /// SHA-256 of the object file.
    pub sha256: Option<String>,
}

/// airpath's own congestion controls in the kernel and those that a user chose, for the lifetime of
/// this value.
pub(crate) struct CongestionControls {
    names: Names,
    chosen: Vec<ChosenCongestion>,
    #[cfg(feature = "bpf")]
    _cubic: Option<airpath_bpf::Cubic>,
    #[cfg(feature = "bpf")]
    _objects: Vec<airpath_bpf::CongestionControl>,
}

/// Their names in the kernel.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Names {
    /// CUBIC with the slow start of a generation, by [`generation`]; empty if not requested.
    pub(crate) ours: BTreeMap<&'static str, String>,
    /// The generation of the kernel's own CUBIC, if known.
    kernel: Option<&'static str>,
    /// What a user chose for a flow, or for all others.
    chosen: BTreeMap<Option<String>, String>,
}

const V4_19: &str = "air_4.19";
const V5_6: &str = "air_5.6";
const V5_8: &str = "air_5.8";
const V5_16: &str = "air_5.16";
const V6_14: &str = "air_6.14";

impl CongestionControls {
    /// Registers airpath's own, if the scenario requests its own slow start, and what a user chose.
    ///
    /// # Errors
    ///
    /// If BPF is unavailable, or the kernel does not have or take what was chosen.
    pub(crate) fn load(of: SlowStartOf, choices: &[Choice]) -> Result<Self, EmuError> {
        let mut controls = Self {
            names: Names::default(),
            chosen: Vec::new(),
            #[cfg(feature = "bpf")]
            _cubic: None,
            #[cfg(feature = "bpf")]
            _objects: Vec::new(),
        };
        if of == SlowStartOf::Profile {
            controls.register()?;
        }
        let mut loaded: Vec<(&Source, String)> = Vec::new();
        for Choice { flow, source } in choices {
            let known = loaded.iter().find(|(other, _)| *other == source);
            let name = match known {
                Some((_, name)) => name.clone(),
                None => controls.choose(source)?,
            };
            know_congestion(&name);
            controls.names.chosen.insert(flow.clone(), name.clone());
            let (file, sha256) = match source {
                Source::Host(_) => (None, None),
                Source::Object { file, sha256, .. } => (Some(file.clone()), Some(sha256.clone())),
            };
            controls.chosen.push(ChosenCongestion {
                flow: flow.clone(),
                name: name.clone(),
                file,
                sha256,
            });
            loaded.push((source, name));
        }
        Ok(controls)
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// What a user chose.
    pub(crate) fn chosen(&self) -> &[ChosenCongestion] {
        &self.chosen
    }

    #[cfg(feature = "bpf")]
    fn register(&mut self) -> Result<(), EmuError> {
        use airpath_bpf::{Cubic, Generation};
        let tick_us = (crate::clock::tick().as_nanos() / 1_000) as u32;
        let cubic = Cubic::load(tick_us).map_err(|error| needed(&error.to_string()))?;
        let ours = Generation::ALL.map(|each| (each.kernel_name(), cubic.name(each)));
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        self.names.ours = ours.into();
        self.names.kernel = kernels(&release);
        self._cubic = Some(cubic);
        Ok(())
    }

    #[cfg(not(feature = "bpf"))]
    fn register(&mut self) -> Result<(), EmuError> {
        Err(needed(crate::error::BPF_NOT_BUILT))
    }

    /// Makes a congestion control available; returns its name in the kernel.
    fn choose(&mut self, source: &Source) -> Result<String, EmuError> {
        match source {
            Source::Host(name) => on_host(name).map(|()| name.clone()),
            Source::Object { file, elf, name, .. } => {
                self.choose_object(file, elf, name.as_deref())
            }
        }
    }

    #[cfg(feature = "bpf")]
    fn choose_object(
        &mut self,
        file: &str,
        elf: &[u8],
        name: Option<&str>,
    ) -> Result<String, EmuError> {
        use airpath_bpf::{CongestionControl, CongestionError};
        let control = CongestionControl::load(elf, name).map_err(|error| match error {
            CongestionError::Object(said) => {
                EmuError::NoCongestion { said: format!("{file}: {said}") }
            }
            CongestionError::Kernel(error) => {
                let said = match error.refusal() {
                    Some(refusal) => format!(
                        "{file}: the verifier refused `{}`: {}",
                        refusal.program, refusal.reason
                    ),
                    None => format!("{file}: {error}"),
                };
                let log = error.refusal().map(|refusal| refusal.log.to_owned());
                EmuError::RefusedCongestion { said, log: log.unwrap_or_default() }
            }
        })?;
        let name = control.name().to_owned();
        self._objects.push(control);
        Ok(name)
    }

    #[cfg(not(feature = "bpf"))]
    #[allow(clippy::unused_self, reason = "with BPF it is used")]
    fn choose_object(&mut self, file: &str, _: &[u8], _: Option<&str>) -> Result<String, EmuError> {
        Err(EmuError::Bpf { said: format!("{file}: {}", crate::error::BPF_NOT_BUILT) })
    }
}

/// Makes congestion controls available for a moment, so that a user learns at once whether the
/// kernel takes them.
///
/// # Errors
///
/// If the kernel lacks one or refuses it.
pub fn check_congestion(choices: &[Choice]) -> Result<(), EmuError> {
    CongestionControls::load(SlowStartOf::Kernel, choices).map(drop)
}

/// Whether the host has a congestion control. The kernel loads its module if it has to.
fn on_host(name: &str) -> Result<(), EmuError> {
    let asked = socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::TCP))
        .and_then(|socket| sockopt::set_tcp_congestion(&socket, name));
    match asked {
        // It exists, but not every user may choose it.
        Ok(()) | Err(Errno::PERM) => Ok(()),
        Err(Errno::NOENT) => {
            let there = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
            let there: Vec<_> =
                there.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
            Err(EmuError::NoCongestion {
                said: format!("this host has no `{name}`; it has {}", there.join(", ")),
            })
        }
        Err(error) => Err(EmuError::NoCongestion { said: format!("`{name}`: {error}") }),
    }
}

fn needed(said: &str) -> EmuError {
    EmuError::Bpf { said: format!("emulation.slow_start = \"profile\" needs BPF: {said}") }
}

impl Names {
    /// The congestion control that a user chose for all flows and for programs.
    pub(crate) fn for_all(&self) -> Option<&String> {
        self.chosen.get(&None)
    }

    /// The congestion control for an end of a flow.
    ///
    /// # Errors
    ///
    /// If the kernel lacks the congestion control, or the slow start.
    pub(crate) fn of(&self, flow: &str, end: &EndpointConfig) -> Result<String, EmuError> {
        if let Some(chosen) = self.chosen.get(&Some(flow.to_owned())).or_else(|| self.for_all()) {
            return Ok(chosen.clone());
        }
        let flow = || flow.to_owned();
        let name = kernel_name(&end.congestion).ok_or_else(|| EmuError::Congestion {
            flow: flow(),
            name: end.congestion.name().to_owned(),
        })?;
        if self.ours.is_empty() || name != "cubic" {
            return Ok(name.to_owned());
        }
        let wanted = generation(end.slow_start.exit);
        if wanted.is_some() && wanted == self.kernel {
            return Ok(name.to_owned());
        }
        let ours = wanted.and_then(|wanted| self.ours.get(wanted));
        ours.cloned().ok_or_else(|| EmuError::SlowStart { flow: flow() })
    }
}

const fn kernel_name(congestion: &CongestionConfig) -> Option<&'static str> {
    match congestion {
        CongestionConfig::Reno(_) => Some("reno"),
        CongestionConfig::Cubic(_) => Some("cubic"),
        CongestionConfig::Bbr1 { .. } => Some("bbr"),
        _ => None,
    }
}

/// Name of the congestion control with this slow start, if only one airpath has loaded it.
fn generation(exit: EarlyExit) -> Option<&'static str> {
    let backported = HystartConfig { falling_minimum_exits: false, ..HystartConfig::LINUX_4_19 };
    let hystart = match exit {
        EarlyExit::None => return Some("air_none"),
        EarlyExit::HystartPlusPlus => return Some("air_hystartpp"),
        EarlyExit::Hystart(hystart) => hystart,
    };
    let known = [
        (HystartConfig::LINUX_4_19, V4_19),
        (backported, "air_4.19.131"),
        (HystartConfig { round_start: RoundStart::Prompt, ..backported }, "air_4.19_both"),
        (HystartConfig::LINUX_5_6, V5_6),
        (HystartConfig::LINUX_5_8, V5_8),
        (HystartConfig::LINUX_5_16, V5_16),
        (HystartConfig::LINUX_6_14, V6_14),
    ];
    known.into_iter().find(|(config, _)| *config == hystart).map(|(_, name)| name)
}

/// The generation of a kernel's CUBIC, as in docs/concepts/slow-start.md. Before 5.6 there are
/// backports that the release does not show; with parameters other than the defaults it is a
/// different one.
#[cfg_attr(not(feature = "bpf"), allow(dead_code, reason = "only BPF offers another one"))]
fn kernels(release: &str) -> Option<&'static str> {
    let parameter =
        |name: &str| fs::read_to_string(format!("/sys/module/tcp_cubic/parameters/{name}")).ok();
    let is = |name, value| parameter(name).is_none_or(|text| text.trim() == value);
    if !(is("hystart", "1") && is("hystart_detect", "3") && is("hystart_low_window", "16")) {
        return None;
    }
    let mut numbers = release.split(|sign: char| !sign.is_ascii_digit());
    let version: (u32, u32) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    match version {
        (6, 14..) | (7.., _) => Some(V6_14),
        (5, 16..) | (6, _) => Some(V5_16),
        (5, 8..) => Some(V5_8),
        (5, 6..) => Some(V5_6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_has_one_name() {
        let hystart = EarlyExit::Hystart;
        assert_eq!(generation(hystart(HystartConfig::LINUX_4_19)), Some(V4_19));
        let both = HystartConfig {
            falling_minimum_exits: false,
            round_start: RoundStart::Prompt,
            ..HystartConfig::LINUX_4_19
        };
        assert_eq!(generation(hystart(both)), Some("air_4.19_both"));
        assert_eq!(generation(EarlyExit::HystartPlusPlus), Some("air_hystartpp"));
        let other = HystartConfig { delay: false, ..HystartConfig::LINUX_5_8 };
        assert_eq!(generation(hystart(other)), None);
    }

    #[test]
    fn a_release_tells_the_kernels_generation() {
        let known = ["6.18.44-fc", "6.14", "6.1.0-28-amd64", "5.15.0", "5.7.1", "4.19.130"];
        let expected = [Some(V6_14), Some(V6_14), Some(V5_16), Some(V5_8), Some(V5_6), None];
        assert_eq!(known.map(kernels), expected);
    }
}
