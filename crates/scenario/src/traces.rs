//! The trace files of a scenario, and the traces that come with the program.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use airpath_path::{Trace, TraceError};
use sha2::{Digest, Sha256};

use crate::Origin;
use crate::problem::Problems;
use crate::suggest::{list, nearest};

/// How a shipped trace is named in a `file` key.
const BUILT_IN_PREFIX: &str = "builtin:";

/// Name, description and text of the shipped traces.
pub(crate) const BUILT_IN: &[(&str, &str, &str)] = &[(
    "sawtooth",
    "Synthetic: capacity rises from 0.6 to 3.6 Mb/s in 2 s and falls back, again and again.",
    include_str!("../../../scenarios/traces/sawtooth.trace"),
)];

/// A trace that a scenario uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// The value of the `file` key, as given.
    pub file: String,
    /// SHA-256 of the file as it is stored, in hexadecimal.
    pub sha256: String,
}

/// Traces read so far; each file is read once.
#[derive(Default)]
pub(crate) struct Traces {
    loaded: Vec<(TraceFile, Arc<Trace>)>,
}

/// Why a trace cannot be had.
pub(crate) enum LoadError {
    /// Not a trace.
    Trace(TraceError),
    /// No shipped trace of that name.
    NoSuchBuiltIn(String),
}

impl Traces {
    /// The trace that a `file` key names.
    pub(crate) fn load(
        &mut self,
        file: &str,
        directory: Option<&Path>,
    ) -> Result<Arc<Trace>, LoadError> {
        if let Some((_, trace)) = self.loaded.iter().find(|(known, _)| known.file == file) {
            return Ok(trace.clone());
        }
        let (trace, sha256) = match file.strip_prefix(BUILT_IN_PREFIX) {
            Some(name) => load_built_in(name, file)?,
            None => load_file(&directory.map_or_else(|| PathBuf::from(file), |at| at.join(file)))
                .map_err(LoadError::Trace)?,
        };
        let trace = Arc::new(trace);
        self.loaded.push((TraceFile { file: file.to_owned(), sha256 }, trace.clone()));
        Ok(trace)
    }

    /// What was loaded, in the order of first use.
    pub(crate) fn files(&self) -> Vec<TraceFile> {
        self.loaded.iter().map(|(file, _)| file.clone()).collect()
    }
}

impl LoadError {
    /// Says so, at the place of the `file` key.
    pub(crate) fn report(self, origin: &Origin, problems: &mut Problems) {
        match self {
            Self::Trace(error) => problems.add(origin, error.to_string()),
            Self::NoSuchBuiltIn(name) => {
                let names = || BUILT_IN.iter().map(|&(name, ..)| name);
                let near = nearest(&name, names())
                    .map_or_else(String::new, |near| format!("did you mean \"builtin:{near}\"? "));
                problems.add_with_help(
                    origin,
                    format!("`file`: there is no built-in trace {name:?}"),
                    format!("{near}built-in traces: {}", list(names())),
                );
            }
        }
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn load_built_in(name: &str, file: &str) -> Result<(Trace, String), LoadError> {
    let (.., text) = BUILT_IN
        .iter()
        .find(|&&(known, ..)| known == name)
        .ok_or_else(|| LoadError::NoSuchBuiltIn(name.to_owned()))?;
    let trace = Trace::parse(text.as_bytes(), Path::new(file)).map_err(LoadError::Trace)?;
    Ok((trace, sha256_hex(text.as_bytes())))
}

fn load_file(path: &Path) -> Result<(Trace, String), TraceError> {
    let trace = Trace::read(path)?;
    let bytes =
        std::fs::read(path).map_err(|source| TraceError::Read { path: path.to_owned(), source })?;
    Ok((trace, sha256_hex(&bytes)))
}
