//! Where a scenario comes from.

use std::path::Path;

/// A scenario file.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// What messages call it; also gives the scenario its name, if the file does not.
    pub name: &'a str,
    /// What it holds.
    pub text: &'a str,
    /// Where relative trace files are; the current directory if `None`.
    pub directory: Option<&'a Path>,
}
