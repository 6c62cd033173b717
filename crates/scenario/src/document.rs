//! A scenario file as it was read: a tree of keys, which edits change without reading it again.

use std::path::Path;
use std::sync::Arc;

use crate::checked::Checked;
use crate::edit::{Edit, KeyPath};
use crate::model::{Scenario, SimulatedOnly};
use crate::node::Node;
use crate::problem::{Problems, ScenarioError};
use crate::source::Source;
use crate::traces::TraceFile;
use crate::{build, digest, resolve, set};

/// A scenario and its provenance.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The scenario to run.
    pub scenario: Scenario,
    /// The scenario as TOML with every key that has a value, defaults included, in canonical order.
    /// It parses to the same scenario, [without secrets](Scenario::without_secrets). Trace files
    /// are named as given, so relative names need the same [`Source::directory`].
    pub resolved_toml: String,
    /// SHA-256 in hexadecimal of [`Parsed::resolved_toml`], followed by a line
    /// `trace FILE SHA256` for each of [`Parsed::traces`].
    pub sha256: String,
    /// Trace files, in the order of first use.
    pub traces: Vec<TraceFile>,
    /// Keys of the flows that only simulated endpoints follow, where they differ from the flow's
    /// profile.
    pub simulated_only: Vec<SimulatedOnly>,
    /// The file with its settings, to edit further.
    pub document: Document,
}

/// A file that is TOML. Whether it is a scenario shows when it is checked, with its edits.
#[derive(Clone, Debug)]
pub struct Document {
    name: Arc<str>,
    directory: Option<Arc<Path>>,
    root: Arc<Node>,
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// All syntax errors.
    pub fn read(source: &Source<'_>) -> Result<Self, ScenarioError> {
        let mut problems = Problems::default();
        let root = Node::parse(source.name, source.text, &mut problems);
        // What the parser recovered from a broken file is not what was meant.
        problems.finish()?;
        let (name, directory) = (source.name.into(), source.directory.map(Arc::from));
        Ok(Self { name, directory, root: Arc::new(root) })
    }

    /// The scenario with these edits, of which the last one wins.
    ///
    /// # Errors
    ///
    /// All problems that were found.
    pub fn with(&self, edits: &[Edit]) -> Result<Parsed, ScenarioError> {
        self.edited(|root, problems| edits.iter().for_each(|edit| set::apply(root, edit, problems)))
    }

    /// The scenario with `KEY=VALUE` arguments, of which the last one wins.
    ///
    /// # Errors
    ///
    /// All problems that were found.
    pub fn set(&self, arguments: &[String]) -> Result<Parsed, ScenarioError> {
        self.set_by(set::OPTION, arguments)
    }

    /// [`Document::set`] for arguments that `option` gave, which messages name.
    ///
    /// # Errors
    ///
    /// All problems that were found.
    pub fn set_by(&self, option: &str, arguments: &[String]) -> Result<Parsed, ScenarioError> {
        self.edited(|root, problems| {
            arguments.iter().for_each(|argument| set::parse(root, option, argument, problems));
        })
    }

    /// Number of elements of a list; 0 if there is no such list.
    pub fn elements(&self, list: &KeyPath) -> usize {
        set::list_at(&self.root, &list.0).len()
    }

    fn edited(&self, edit: impl FnOnce(&mut Node, &mut Problems)) -> Result<Parsed, ScenarioError> {
        let mut problems = Problems::default();
        let mut root = Node::clone(&self.root);
        edit(&mut root, &mut problems);
        let checked = Checked::read(&self.name, self.directory.as_deref(), &root, &mut problems);
        problems.finish()?;
        let mut problems = Problems::default();
        let scenario = build::scenario(&checked, &mut problems);
        problems.finish()?;
        let resolved_toml = resolve::write(&checked);
        let traces = checked.traces.files();
        let mut hashed = resolved_toml.clone();
        for trace in &traces {
            hashed.push_str(&format!("trace {} {}\n", trace.file, trace.sha256));
        }
        let sha256 = digest::sha256_hex(hashed.as_bytes());
        let document = Self { root: Arc::new(root), ..self.clone() };
        let simulated_only = checked.simulated_only;
        Ok(Parsed { scenario, resolved_toml, sha256, traces, simulated_only, document })
    }
}
