//! Chooses the kernel's congestion control for a flow, including CUBIC's slow start.

use std::collections::BTreeMap;
use std::fs;

use airpath_scenario::SlowStartOf;
use airpath_tcp::{CongestionConfig, EarlyExit, EndpointConfig, HystartConfig, RoundStart};

use crate::EmuError;

/// airpath's own congestion controls in the kernel, for the lifetime of this value.
pub(crate) struct SlowStarts {
    names: Names,
    #[cfg(feature = "bpf")]
    _cubic: Option<airpath_bpf::Cubic>,
}

/// Their names in the kernel.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Names {
    /// CUBIC with the slow start of a generation, by [`generation`]; empty if not requested.
    pub(crate) ours: BTreeMap<&'static str, String>,
    /// The generation of the kernel's own CUBIC, if known.
    kernel: Option<&'static str>,
}

const V4_19: &str = "air_4.19";
const V5_6: &str = "air_5.6";
const V5_8: &str = "air_5.8";
const V5_16: &str = "air_5.16";
const V6_14: &str = "air_6.14";

impl SlowStarts {
    /// Registers them, if the scenario requests its own slow start.
    ///
    /// # Errors
    ///
    /// If BPF is unavailable.
    pub(crate) fn load(of: SlowStartOf) -> Result<Self, EmuError> {
        match of {
            SlowStartOf::Kernel => Ok(Self {
                names: Names::default(),
                #[cfg(feature = "bpf")]
                _cubic: None,
            }),
            SlowStartOf::Profile => Self::register(),
        }
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    #[cfg(feature = "bpf")]
    fn register() -> Result<Self, EmuError> {
        use airpath_bpf::{Cubic, Generation};
        let tick_us = (crate::clock::tick().as_nanos() / 1_000) as u32;
        let cubic = Cubic::load(tick_us).map_err(|error| needed(&error.to_string()))?;
        let ours = Generation::ALL.map(|each| (each.kernel_name(), cubic.name(each)));
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let names = Names { ours: ours.into(), kernel: kernels(&release) };
        Ok(Self { names, _cubic: Some(cubic) })
    }

    #[cfg(not(feature = "bpf"))]
    fn register() -> Result<Self, EmuError> {
        Err(needed(crate::error::BPF_NOT_BUILT))
    }
}

fn needed(said: &str) -> EmuError {
    EmuError::Bpf { said: format!("emulation.slow_start = \"profile\" needs BPF: {said}") }
}

impl Names {
    /// The congestion control for an end of a flow.
    ///
    /// # Errors
    ///
    /// If the kernel lacks the congestion control, or the slow start.
    pub(crate) fn of(&self, flow: &str, end: &EndpointConfig) -> Result<String, EmuError> {
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
