//! Where a scenario comes from.

use std::path::Path;

/// A scenario file.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The file's name in messages; also the scenario's name, if the file does not set one.
    pub name: &'a str,
    /// Contents of the file.
    pub text: &'a str,
    /// The directory to which trace files are relative; the current one if `None`.
    pub directory: Option<&'a Path>,
}
