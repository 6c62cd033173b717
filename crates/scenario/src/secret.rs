//! Secrets of a scenario: where they are, and the hash that stands for one in what a run writes.

use crate::model::Scenario;
use crate::spec::{Privacy, UE};
use crate::traces::sha256_hex;

/// How a hash begins where a secret could stand.
const PREFIX: &str = "sha256:";

/// Names of the keys of `[[radio.ue]]` that are secret.
pub fn secret_keys() -> impl Iterator<Item = &'static str> {
    let keys = UE.groups.iter().flat_map(|group| group.keys);
    keys.filter(|key| key.privacy == Privacy::Secret).map(|key| key.name)
}

/// What stands for a secret: SHA-256 over the key's name, the IMSI and the value, so that equal
/// values of two UEs do not look equal. A hash stands for itself.
pub fn secret_hash(key: &str, imsi: &str, value: &str) -> String {
    if is_hash(value) {
        return value.to_owned();
    }
    let text = format!("airpath {key} {imsi} {}", value.to_ascii_lowercase());
    format!("{PREFIX}{}", sha256_hex(text.as_bytes()))
}

impl Scenario {
    /// The scenario that its resolved text says: with hashes for secrets.
    pub fn without_secrets(mut self) -> Self {
        if let Some(core) = &mut self.core {
            core.keys = None;
            for usim in &mut core.usims {
                let imsi = usim.imsi.clone();
                let hashed = |name: &str, value: &mut Option<String>| {
                    *value = value.take().map(|value| secret_hash(name, &imsi, &value));
                };
                hashed("key", &mut usim.key);
                hashed("opc", &mut usim.opc);
            }
        }
        self
    }
}

/// Whether this is a hash, not a secret.
pub(crate) fn is_hash(value: &str) -> bool {
    value.strip_prefix(PREFIX).is_some_and(|hash| {
        hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}
