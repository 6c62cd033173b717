//! The trace files of a scenario, and the traces that ship with the program.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use airpath_base::recording::{read_stored, unpacked};
use airpath_path::{Trace, TraceError};
use airpath_radio::channel::{ChannelTrace, ChannelTraceError, LogColumn, Missing};

use crate::Origin;
use crate::digest::sha256_hex;
use crate::problem::Problems;
use crate::suggest::{list, nearest};

/// Prefix of a shipped trace in a `file` key.
const BUILT_IN_PREFIX: &str = "builtin:";

/// Name, description and text of each shipped trace.
pub(crate) const BUILT_IN: &[(&str, &str, &str)] = &[(
    "sawtooth",
    "Synthetic: capacity rises from 0.6 to 3.6 Mb/s in 2 s and falls back, repeatedly.",
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
    /// In the order of first use.
    files: Vec<TraceFile>,
    /// The contents of the files.
    texts: Vec<(PathBuf, Arc<[u8]>)>,
    loaded: Vec<(String, Arc<Trace>)>,
    channels: Vec<(ChannelFile, Arc<ChannelTrace>)>,
}

/// A recorded channel, and how to read it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ChannelFile {
    /// The value of the `file` key, as given.
    pub(crate) file: String,
    /// Which column of a log is used.
    pub(crate) column: LogColumn,
    /// What a row without a value means.
    pub(crate) missing: Missing,
}

/// Why a trace cannot be loaded.
pub(crate) enum LoadError {
    /// Not a trace.
    Trace(TraceError),
    /// Not a recording of a channel.
    Channel(ChannelTraceError),
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
        if let Some((_, trace)) = self.loaded.iter().find(|(known, _)| known == file) {
            return Ok(trace.clone());
        }
        let trace = match file.strip_prefix(BUILT_IN_PREFIX) {
            Some(name) => {
                let (trace, sha256) = load_built_in(name, file)?;
                self.used(file, sha256);
                trace
            }
            None => {
                let path = path(file, directory);
                let unread = |source| TraceError::Read { path: path.clone(), source };
                let text = self.text(file, &path).map_err(|error| LoadError::Trace(unread(error)));
                Trace::parse(&text?, &path).map_err(LoadError::Trace)?
            }
        };
        let trace = Arc::new(trace);
        self.loaded.push((file.to_owned(), trace.clone()));
        Ok(trace)
    }

    /// The recorded channel that a `file` key names.
    pub(crate) fn load_channel(
        &mut self,
        wanted: ChannelFile,
        directory: Option<&Path>,
    ) -> Result<Arc<ChannelTrace>, LoadError> {
        if let Some((_, trace)) = self.channels.iter().find(|(known, _)| *known == wanted) {
            return Ok(trace.clone());
        }
        let ChannelFile { file, column, missing } = &wanted;
        if let Some(name) = file.strip_prefix(BUILT_IN_PREFIX) {
            return Err(LoadError::NoSuchBuiltIn(name.to_owned()));
        }
        let path = path(file, directory);
        let unread = |source| ChannelTraceError::Read { path: path.clone(), source };
        let text = self.text(file, &path).map_err(|error| LoadError::Channel(unread(error)))?;
        let trace =
            ChannelTrace::parse(&text, &path, *column, *missing).map_err(LoadError::Channel)?;
        let trace = Arc::new(trace);
        self.channels.push((wanted, trace.clone()));
        Ok(trace)
    }

    /// The contents of a file. Each file is read once, so what is hashed is what is used.
    fn text(&mut self, file: &str, path: &Path) -> std::io::Result<Arc<[u8]>> {
        if let Some((_, text)) = self.texts.iter().find(|(known, _)| known == path) {
            return Ok(text.clone());
        }
        let stored = read_stored(path)?;
        let sha256 = sha256_hex(&stored);
        let text: Arc<[u8]> = unpacked(stored)?.into();
        self.texts.push((path.to_owned(), text.clone()));
        self.used(file, sha256);
        Ok(text)
    }

    fn used(&mut self, file: &str, sha256: String) {
        if !self.files.iter().any(|known| known.file == file) {
            self.files.push(TraceFile { file: file.to_owned(), sha256 });
        }
    }

    /// The files that were loaded, in the order of first use.
    pub(crate) fn files(&self) -> Vec<TraceFile> {
        self.files.clone()
    }
}

impl LoadError {
    /// Reports the error at the place of the `file` key.
    pub(crate) fn report(self, origin: &Origin, problems: &mut Problems) {
        match self {
            Self::Trace(error) => problems.add(origin, error.to_string()),
            Self::Channel(error) => problems.add(origin, error.to_string()),
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

fn path(file: &str, directory: Option<&Path>) -> PathBuf {
    directory.map_or_else(|| PathBuf::from(file), |at| at.join(file))
}

fn load_built_in(name: &str, file: &str) -> Result<(Trace, String), LoadError> {
    let (.., text) = BUILT_IN
        .iter()
        .find(|&&(known, ..)| known == name)
        .ok_or_else(|| LoadError::NoSuchBuiltIn(name.to_owned()))?;
    let trace = Trace::parse(text.as_bytes(), Path::new(file)).map_err(LoadError::Trace)?;
    Ok((trace, sha256_hex(text.as_bytes())))
}
