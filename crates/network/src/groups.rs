//! Flows that one table of the scenario stands for (`streams`): their sum, for any clock.

use airpath_record::{FlowSummary, GroupSummary, RunSummary, Tables};
use airpath_scenario::Scenario;

/// Adds what the flows of each group got together to the summary and to the table `groups`. The
/// flows have to be in the summary already.
pub fn summarise_groups(scenario: &Scenario, summary: &mut RunSummary, tables: &mut Tables) {
    let mut groups: Vec<(&str, Vec<&FlowSummary>)> = Vec::new();
    for flow in &scenario.flows {
        let Some(group) = flow.group.as_deref() else { continue };
        let Some(row) = summary.flows.iter().find(|row| row.id == flow.id) else { continue };
        match groups.last_mut() {
            // The flows of a group follow on each other.
            Some((name, rows)) if *name == group => rows.push(row),
            _ => groups.push((group, vec![row])),
        }
    }
    let groups: Vec<_> = groups.iter().map(|(id, rows)| GroupSummary::of(id, rows)).collect();
    for group in &groups {
        let name = tables.names.add(&group.id);
        tables.group(group.row(name));
    }
    summary.groups = groups;
}
