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
    use airpath_path::radio::cell::{CellConfig, NrCarrier, UeConfig};
    use airpath_scenario::{RadioConfig, Source, parse, shipped};

    use super::*;

    fn scenario(name: &str, text: &str) -> Scenario {
        let source = Source { name, text, directory: None };
        parse(&source, &[]).unwrap_or_else(|error| panic!("{error}")).scenario
    }

    fn refusal(scenario: &Scenario) -> Option<String> {
        paths(scenario, 1).err().map(|error| error.to_string())
    }

    #[test]
    fn of_the_shipped_scenarios_those_with_a_proxy_or_a_radio_are_refused() {
        for (name, text) in shipped() {
            let scenario = scenario(name, text);
            let expected = match (&scenario.radio, *name) {
                (Some(radio), _) => Some(format!(
                    "radio `{}`: a cell can be simulated, not emulated; remove [radio]",
                    radio.preset
                )),
                (None, "proxy") => Some(
                    "`down.2.proxy`: a TCP proxy can be simulated, not emulated; remove it from \
                     [[path.down]] and [[path.up]]"
                        .to_owned(),
                ),
                _ => None,
            };
            assert_eq!(refusal(&scenario), expected, "{name}");
        }
    }

    #[test]
    fn a_scenario_with_a_radio_is_refused() {
        let mut scenario = scenario("ping", "[[flow]]\nkind = \"ping\"\n");
        assert_eq!(refusal(&scenario), None);
        let cell = CellConfig::nr(NrCarrier::n78_100_mhz());
        let config = UeConfig::plain(&cell.access);
        scenario.radio = Some(RadioConfig::alone("nr-n78", &cell, &[("phone", config)]));
        let expected = "radio `nr-n78`: a cell can be simulated, not emulated; remove [radio]";
        assert_eq!(refusal(&scenario).as_deref(), Some(expected));
    }
}
