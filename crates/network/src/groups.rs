//! Sums of the flows that one table of the scenario stands for (`streams`), for either clock.

use airpath_record::{FlowSummary, GroupSummary, RunSummary, Tables};
use airpath_scenario::Scenario;

/// Adds what the flows of each group achieved together to the summary and to the table `groups`.
/// The flows must already be in the summary.
pub fn summarise_groups(scenario: &Scenario, summary: &mut RunSummary, tables: &mut Tables) {
    let mut groups: Vec<(&str, Vec<&FlowSummary>)> = Vec::new();
    for flow in &scenario.flows {
        let Some(group) = flow.group.as_deref() else { continue };
        let Some(row) = summary.flows.iter().find(|row| row.id == flow.id) else { continue };
        match groups.last_mut() {
            // The flows of a group are adjacent.
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
