//! What an emulation runs inside the scenario's network, and what it records.

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::path::PathBuf;

use crate::host::congestion::Choice;
use crate::host::session::UeSession;
use crate::observation::live::Live;

/// What an emulation runs in addition to the scenario's programs, and what it records.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Program and arguments; the run ends with it. Empty: no command.
    pub command: Vec<String>,
    /// The end where it runs; `None`: the first UE.
    pub place: Option<String>,
    /// Shell commands that are started before it, at the server's end.
    pub servers: Vec<String>,
    /// Whether kernel sockets run the scenario's flows. Without a command and programs, the run
    /// ends with the flows.
    pub flows: bool,
    /// Congestion controls that replace those of the scenario's flows.
    pub congestion: Vec<Choice>,
    /// Descriptor for the command's standard output; `None`: this process's.
    pub output: Option<RawFd>,
    /// Descriptor for the command's standard error; `None`: this process's.
    pub error: Option<RawFd>,
    /// Directory for the output of the scenario's programs; `None`: standard error.
    pub files: Option<PathBuf>,
    /// Identity under which all programs run.
    pub identity: Identity,
    /// Sessions of UEs that have attached: one session for each UE that has an end, or an empty
    /// list.
    pub sessions: Vec<UeSession>,
    /// A pcapng file to create.
    pub capture: Option<PathBuf>,
    /// Where snapshots are published.
    pub live: Option<Live>,
    /// Whether to keep a [`Journal`](crate::Journal).
    pub journal: bool,
    /// Whether to bypass the model; see [`Settings::bare`](crate::Settings::bare).
    pub bare: bool,
}

/// The identity under which programs run.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// User, group and supplementary groups; `None`: those of this process.
    pub user: Option<(u32, u32, Vec<u32>)>,
    /// Whether they have no capabilities except CAP_NET_RAW; root's programs may also give up root.
    pub limited: bool,
    /// Environment variables; `None`: those of this process.
    pub environment: Option<Vec<(OsString, OsString)>>,
}
