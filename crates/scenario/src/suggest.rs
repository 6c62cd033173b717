//! Unknown keys, and what was probably meant.

use crate::Origin;
use crate::problem::Problems;
use crate::spec::Table;

/// Reports a key that the table does not have, or does not have for this variant.
pub(crate) fn unknown_key(
    name: &str,
    origin: &Origin,
    table: &Table,
    variant: Option<&str>,
    here: &str,
    problems: &mut Problems,
) {
    let allowed = || match list(table.keys(variant).map(|key| key.name)) {
        none if none.is_empty() => "nothing".to_owned(),
        names => names,
    };
    let elsewhere = table.variants_of(name);
    if !elsewhere.is_empty() {
        // Only a table with a selector has variants.
        let selector = table.selector.unwrap_or_default();
        problems.add_with_help(
            origin,
            format!("`{name}` does not apply to {here}"),
            format!(
                "it is valid for {selector} {}; allowed here: {}",
                list(elsewhere.iter().map(|each| format!("\"{each}\""))),
                allowed()
            ),
        );
        return;
    }
    let near = nearest(name, table.keys(variant).map(|key| key.name))
        .map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    problems.add_with_help(
        origin,
        match table.path {
            "" => format!("unknown key `{name}` at the top level"),
            _ => format!("unknown key `{name}` in {here}"),
        },
        format!("{near}allowed here: {}", allowed()),
    );
}

/// Reports that `key` names something that there is not: a `what` called `name`. At most twenty of
/// the names that there are get listed.
pub(crate) fn unknown_name<'a>(
    key: &str,
    what: &str,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
    origin: &Origin,
    problems: &mut Problems,
) {
    let near = nearest(name, names.clone())
        .map_or_else(String::new, |near| format!("did you mean \"{near}\"? "));
    problems.add_with_help(
        origin,
        format!("`{key}`: there is no {what} {name:?}"),
        format!("{near}{what}s: {}", list(names.take(20))),
    );
}

/// The candidate that was probably meant, if any is near enough.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let score = |candidate: &str| {
        // A forgotten unit, or a unit too many, is the likeliest mistake.
        let stem = |long: &str, short: &str| {
            long.strip_prefix(short).is_some_and(|rest| rest.starts_with('_'))
        };
        if stem(candidate, name) || stem(name, candidate) {
            return 1.0;
        }
        strsim::normalized_damerau_levenshtein(&name.to_lowercase(), candidate)
    };
    candidates
        .into_iter()
        .map(|candidate| (score(candidate), candidate))
        .filter(|&(score, _)| score >= 0.6)
        // Of equals the shortest.
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.len().cmp(&a.1.len())))
        .map(|(_, candidate)| candidate)
}

/// `a, b, c`, without repetitions.
pub(crate) fn list<T: Into<String>>(items: impl IntoIterator<Item = T>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for item in items {
        let item = item.into();
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen.join(", ")
}
