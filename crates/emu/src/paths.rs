//! The paths of a scenario, if they are such that the kernel's packets can pass them.

use airpath_path::{Path, build_pair};
use airpath_scenario::{NamedStage, Scenario};

use crate::EmuError;

/// Builds both directions, down first.
///
/// # Errors
///
/// A TCP proxy: its ends are ours, and the kernel's packets would have to be answered by them. A
/// radio: the driver of the real clock does not know cells.
pub fn paths(scenario: &Scenario, seed: u64) -> Result<[Box<dyn Path>; 2], EmuError> {
    if let Some(proxy) = &scenario.proxy {
        return Err(EmuError::Proxy { stage: proxy.down.name.clone() });
    }
    if let Some(radio) = &scenario.radio {
        return Err(EmuError::Radio { preset: radio.preset.clone() });
    }
    let named = NamedStage::named;
    Ok(build_pair(named(&scenario.down), named(&scenario.up), seed))
}

#[cfg(test)]
mod tests {
    use airpath_scenario::{Source, parse, shipped};

    use super::*;

    #[test]
    fn a_scenario_with_a_proxy_is_refused() {
        for (name, text) in shipped() {
            let source = Source { name, text, directory: None };
            let scenario = parse(&source, &[]).unwrap_or_else(|error| panic!("{error}")).scenario;
            let refused = paths(&scenario, 1).err().map(|error| error.to_string());
            let expected = "`down.2.proxy`: a TCP proxy can be simulated, not emulated; remove it \
                            from [[path.down]] and [[path.up]]";
            assert_eq!(refused.as_deref(), (*name == "proxy").then_some(expected), "{name}");
        }
    }
}
