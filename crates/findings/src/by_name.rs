//! Looks entries up by name, where a search through all of them for each would take time that grows
//! with the square of their number.

use std::collections::BTreeMap;

use airpath_scenario::{Edit, FlowConfig, KeyPath};

/// Entries by name; of several with the same name the first.
#[derive(Clone, Debug)]
pub(crate) struct ByName<'a, T>(BTreeMap<&'a str, &'a T>);

impl<'a, T> ByName<'a, T> {
    pub(crate) fn new(all: &'a [T], name: impl Fn(&T) -> &str) -> Self {
        let mut found = BTreeMap::new();
        for one in all {
            found.entry(name(one)).or_insert(one);
        }
        Self(found)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&'a T> {
        self.0.get(name).copied()
    }
}

impl<'a> ByName<'a, FlowConfig> {
    pub(crate) fn flows(all: &'a [FlowConfig]) -> Self {
        Self::new(all, |flow| &flow.id)
    }
}

/// Flows by the scenario's table that describes them; the streams of a flow share one.
pub(crate) struct ByTable<'a>(BTreeMap<KeyPath, Vec<&'a FlowConfig>>);

impl<'a> ByTable<'a> {
    pub(crate) fn new(all: &'a [FlowConfig]) -> Self {
        let mut found = BTreeMap::<_, Vec<_>>::new();
        for flow in all {
            found.entry(flow.key()).or_default().push(flow);
        }
        Self(found)
    }

    /// Flows to which an edit applies, in their order.
    pub(crate) fn edited_by(&self, edit: &Edit) -> &[&'a FlowConfig] {
        edit.key.tables().find_map(|table| self.0.get(&table)).map_or(&[], Vec::as_slice)
    }
}
