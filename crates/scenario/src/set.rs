//! Settings, `KEY=VALUE`: merged into the document before anything is decoded.

use crate::Origin;
use crate::edit::Edit;
use crate::node::{Entry, Node, Value};
use crate::problem::Problems;
use crate::secret::redacted;
use crate::spec::{EMULATION, FLOW, PATH, PROFILE, PROGRAM, ROOT, STAGE, Table};
use crate::suggest::unknown_key;

/// The option that gives settings, unless another one is named.
pub(crate) const OPTION: &str = "--set";

/// Merges a `KEY=VALUE` argument, which `option` gave, into the document.
pub(crate) fn parse(root: &mut Node, option: &str, argument: &str, problems: &mut Problems) {
    let origin = Origin::Set { text: redacted(argument).into(), option: option.into() };
    let Some((key, value)) = split(argument) else {
        problems.add_with_help(
            &origin,
            "expects KEY=VALUE",
            "e.g. run.duration_s=10 or flow.0.window_bytes=65536",
        );
        return;
    };
    let Some(path) = segments(key) else {
        problems.add_with_help(
            &origin,
            format!("`{key}` is not a dotted path"),
            "e.g. run.duration_s, path.down.0.rate_mbps, profile.\"my-10.5\".sack",
        );
        return;
    };
    merge(root, path, &Node::parse_set(value.trim(), &origin), problems);
}

/// Merges an edit into the document.
pub(crate) fn apply(root: &mut Node, edit: &Edit, problems: &mut Problems) {
    let origin = Origin::Set { text: redacted(&edit.to_string()).into(), option: OPTION.into() };
    let value = edit.setting.0.clone();
    merge(root, edit.key.0.clone(), &Node { value, origin }, problems);
}

/// Merges a value at a path, which may stand for several.
fn merge(root: &mut Node, path: Vec<String>, value: &Node, problems: &mut Problems) {
    for path in expand(root, path, &value.origin, problems) {
        Setting { path: &path, origin: &value.origin }.merge(root, value.clone(), problems);
    }
}

/// Stands for an index: every element of the list to which the key applies.
const EVERY: &str = "*";

/// The paths that one stands for.
fn expand(
    root: &Node,
    path: Vec<String>,
    origin: &Origin,
    problems: &mut Problems,
) -> Vec<Vec<String>> {
    // `stage.*` is every stage of both directions.
    let stages = matches!(&path[..], [stage, every, ..] if stage == "stage" && every == EVERY);
    let paths = if stages {
        let of = |direction: &str| {
            let list = ["path", direction].map(str::to_owned);
            list.into_iter().chain(path[1..].iter().cloned()).collect()
        };
        vec![of("down"), of("up")]
    } else {
        vec![path.clone()]
    };
    let Some(at) = paths[0].iter().position(|part| part == EVERY) else { return paths };
    let mut found = Vec::new();
    for path in &paths {
        for index in elements_with(root, path, at) {
            let mut path = path.clone();
            path[at] = index.to_string();
            found.push(path);
        }
    }
    if found.is_empty() {
        let list = path[..path.iter().position(|part| part == EVERY).unwrap_or(0)].join(".");
        let none = paths.iter().all(|path| list_at(root, &path[..at]).is_empty());
        match table_of(&paths[0]) {
            Some((table, depth)) if !none && paths[0].len() > depth => {
                let key = paths[0][depth..].join(".");
                unknown_key(&key, origin, table, None, &format!("any `{list}`"), problems);
            }
            _ => problems.add(origin, format!("the scenario has no `{list}`")),
        }
    }
    found
}

/// The elements at `path[..at]` in which the rest of the path is valid.
fn elements_with(root: &Node, path: &[String], at: usize) -> Vec<usize> {
    let has = |item: &Node| match table_of(path) {
        Some((table, depth)) if path.len() > depth => {
            has_key(table, item, &path[depth..].join("."))
        }
        _ => true,
    };
    let items = list_at(root, &path[..at]).iter().enumerate();
    items.filter(|(_, item)| has(item)).map(|(index, _)| index).collect()
}

fn has_key(table: &'static Table, item: &Node, key: &str) -> bool {
    let text = table.selector.and_then(|selector| match &item.get(selector)?.value {
        Value::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let variant = table.variants().iter().map(|choice| choice.value).find(|&it| Some(it) == text);
    table.find(key, variant).is_some()
        || table.keys(variant).any(|known| known.subtable() == Some(key))
}

/// The list at that path; empty if there is none.
pub(crate) fn list_at<'a>(root: &'a Node, path: &[String]) -> &'a [Node] {
    let node = path.iter().try_fold(root, |node, key| node.get(key));
    match node.map(|node| &node.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}

/// The table whose key a path names, and where in the path the key begins.
fn table_of(path: &[String]) -> Option<(&'static Table, usize)> {
    match path.first()?.as_str() {
        "flow" => Some((&FLOW, 2)),
        "emulation" => Some((&EMULATION, 1)),
        "program" => Some((&PROGRAM, 2)),
        "profile" => Some((&PROFILE, 2)),
        "path" => Some((&STAGE, 3)),
        _ => None,
    }
}

struct Setting<'a> {
    path: &'a [String],
    origin: &'a Origin,
}

impl Setting<'_> {
    fn merge(&self, root: &mut Node, value: Node, problems: &mut Problems) {
        let mut node = root;
        for depth in 0..self.path.len() {
            let next = match &mut node.value {
                Value::Table(entries) => self.child(depth, entries, problems),
                Value::List(items) => self.element(depth, items, problems),
                _ => {
                    let message = format!("`{}` is a value and has no keys", self.dotted(depth));
                    problems.add(self.origin, message);
                    None
                }
            };
            match next {
                Some(next) => node = next,
                None => return,
            }
        }
        *node = value;
    }

    /// The value under the path's key at `depth`, created if it is missing.
    fn child<'n>(
        &self,
        depth: usize,
        entries: &'n mut Vec<Entry>,
        problems: &mut Problems,
    ) -> Option<&'n mut Node> {
        let key = &self.path[depth];
        let index = match entries.iter().position(|entry| entry.key == *key) {
            Some(index) => index,
            None => {
                let table = match depth {
                    0 => Some(&ROOT),
                    1 if self.path[0] == "path" => Some(&PATH),
                    _ => None,
                };
                if let Some(table) = table
                    && table.find(key, None).is_none()
                {
                    unknown_key(key, self.origin, table, None, table.header, problems);
                    return None;
                }
                if self.path.get(depth + 1).is_some_and(|next| next.parse::<usize>().is_ok()) {
                    self.no_element(depth + 1, &[], problems);
                    return None;
                }
                entries.push(Entry {
                    key: key.clone(),
                    origin: self.origin.clone(),
                    node: Node { value: Value::Table(Vec::new()), origin: self.origin.clone() },
                });
                entries.len() - 1
            }
        };
        if depth + 1 == self.path.len() {
            entries[index].origin = self.origin.clone();
        }
        Some(&mut entries[index].node)
    }

    /// The element of the list at the path's index at `depth`.
    fn element<'n>(
        &self,
        depth: usize,
        items: &'n mut [Node],
        problems: &mut Problems,
    ) -> Option<&'n mut Node> {
        let index = self.path[depth].parse::<usize>().ok().filter(|&index| index < items.len());
        if index.is_none() {
            self.no_element(depth, items, problems);
        }
        items.get_mut(index?)
    }

    fn no_element(&self, depth: usize, items: &[Node], problems: &mut Problems) {
        let (list, wanted) = (self.dotted(depth), &self.path[depth]);
        let named = |key: &str| {
            items.iter().position(
                |item| matches!(item.get(key), Some(Node { value: Value::Text(text), .. }) if text == wanted),
            )
        };
        let named = named("id").map(|at| ("flow", at)).or(named("name").map(|at| ("UE", at)));
        let help = match (named, items.len()) {
            (Some((what, index)), _) => format!("that {what} is `{list}.{index}`"),
            (None, 0) => format!("the scenario has no `{list}`"),
            (None, 1) => format!("the scenario has only `{list}.0`"),
            (None, count) => format!("the scenario has `{list}.0` to `{list}.{}`", count - 1),
        };
        problems.add_with_help(self.origin, format!("there is no `{list}.{wanted}`"), help);
    }

    fn dotted(&self, depth: usize) -> String {
        self.path[..depth].join(".")
    }
}

/// Key and value, at the first `=` outside quotes.
fn split(argument: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    let at = argument.char_indices().find_map(|(at, char)| match (quote, char) {
        (None, '=') => Some(at),
        (None, '"' | '\'') => {
            quote = Some(char);
            None
        }
        (Some(open), char) if open == char => {
            quote = None;
            None
        }
        _ => None,
    })?;
    Some((argument[..at].trim(), &argument[at + 1..]))
}

/// The parts of a dotted path; a part in quotes may hold dots.
fn segments(key: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = key;
    loop {
        let (part, after) = match rest.chars().next()? {
            quote @ ('"' | '\'') => {
                let inner = &rest[1..];
                let end = inner.find(quote)?;
                (&inner[..end], &inner[end + 1..])
            }
            _ => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].trim(), &rest[end..])
            }
        };
        if part.is_empty() {
            return None;
        }
        parts.push(part.to_owned());
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Some(parts),
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_split_at_dots_outside_quotes() {
        let parts = |key| segments(key).map(|parts| parts.join("|"));
        assert_eq!(parts("flow.0.window_bytes").as_deref(), Some("flow|0|window_bytes"));
        assert_eq!(parts("profile.\"my-10.5\".sack").as_deref(), Some("profile|my-10.5|sack"));
        for bad in ["", ".", "a.", "a..b", "\"a", "\"a\"b.c"] {
            assert_eq!(parts(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_first_equals_sign_outside_quotes_splits() {
        assert_eq!(split("title=a=b"), Some(("title", "a=b")));
        assert_eq!(split("profile.\"a=b\".sack=true"), Some(("profile.\"a=b\".sack", "true")));
        assert_eq!(split("title"), None);
    }
}
