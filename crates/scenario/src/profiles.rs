//! TCP profiles: the built-in ones, as data, and those that the file defines.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::Origin;
use crate::check::endpoint;
use crate::model::SimulatedOnly;
use crate::node::{Entry, Node, Value, key};
use crate::problem::Problems;
use crate::read::Fields;
use crate::spec::{FromFirstHop, PROFILE};
use crate::suggest::unknown_name;
use crate::value::{Setting, is_name, toml_value};

/// Name and text of each built-in profile. The first line of the text is its description.
pub(crate) const BUILT_IN: &[(&str, &str)] = &[
    ("rfc", include_str!("../profiles/rfc.toml")),
    ("linux-4.19", include_str!("../profiles/linux-4.19.toml")),
    ("linux-5.4", include_str!("../profiles/linux-5.4.toml")),
    ("linux-5.10", include_str!("../profiles/linux-5.10.toml")),
    ("linux-6.1", include_str!("../profiles/linux-6.1.toml")),
    ("linux-6.18", include_str!("../profiles/linux-6.18.toml")),
    ("macos-10.5", include_str!("../profiles/macos-10.5.toml")),
];

/// The built-in profiles, complete, in the same order. Reading them takes longer than reading a short
/// scenario, so that they are read once.
static COMPLETE: LazyLock<Vec<Arc<Fields>>> =
    LazyLock::new(|| BUILT_IN.iter().map(|(name, text)| Arc::new(built_in(name, text))).collect());

/// Names of the built-in profiles, oldest kernel first.
pub fn profiles() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

/// Most names that a message lists for profiles that start from one another.
const LONGEST_CHAIN: usize = 8;

/// The profiles that a file can use.
#[derive(Default)]
pub(crate) struct Profiles {
    profiles: Vec<Profile>,
    /// Positions of the profiles, by name.
    places: BTreeMap<String, usize>,
}

struct Profile {
    name: String,
    /// The complete profile; `None` if something is wrong with it.
    fields: Option<Arc<Fields>>,
    built_in: bool,
    /// True for a built-in Linux profile and for what starts from one.
    is_linux: bool,
}

impl Profiles {
    /// Reads the `profile` table, if the file has one.
    pub(crate) fn read(table: Option<&Node>, problems: &mut Problems) -> Self {
        let mut profiles = Self::default();
        for (name, fields) in self::profiles().zip(&*COMPLETE) {
            profiles.add(name, Some(Arc::clone(fields)), None);
        }
        let Some(table) = table else { return profiles };
        let Value::Table(entries) = &table.value else {
            let found = table.value.describe();
            let message = format!("`profile` expects tables, [profile.NAME], not {found}");
            problems.add(&table.origin, message);
            return profiles;
        };
        profiles.derive_all(entries, problems);
        profiles
    }

    /// Fills in a flow or a proxy from its profile.
    pub(crate) fn apply(&self, flow: &mut Fields, problems: &mut Problems) {
        expand_window(flow, self.is_linux(flow.choice("profile")), problems);
        flow.refuse_exclusive("application.read_delay_ms", problems);
        let name = flow.choice("profile").unwrap_or_default().to_owned();
        if let Some(base) = self.find(&name, "profile", flow.origin_of("profile"), problems) {
            let congestion = flow.text("congestion").or(base.text("congestion"));
            let silent = flow.given("slow_start").is_none();
            if congestion == Some("reno")
                && silent
                && let Some(setting) = base.setting("reno.slow_start")
            {
                flow.fill("slow_start", setting.clone(), None);
            }
            inherit(flow, &base);
            size_by_first_hop(flow);
        }
    }

    /// Keys of flows that only a simulation follows, where they differ from the flow's profile.
    pub(crate) fn simulated_only<'a>(
        &self,
        flows: impl Iterator<Item = &'a Fields>,
    ) -> Vec<SimulatedOnly> {
        let mut found = Vec::new();
        for (place, flow) in flows.enumerate() {
            let keys = || flow.table.keys(flow.variant).filter(|key| key.simulated_only);
            if keys().next().is_none() {
                continue;
            }
            let mut plain = flow.clone();
            keys().for_each(|key| plain.remove(key.name));
            // The flow's problems have been reported already.
            let mut known = Problems::default();
            self.apply(&mut plain, &mut known);
            plain.complete(&mut known);
            for key in keys() {
                let said = |fields: &Fields| match fields.setting(key.name) {
                    Some(Setting::Text(text)) => text.clone(),
                    Some(setting) => toml_value(key, setting),
                    None => String::new(),
                };
                let (value, profile_value) = (said(flow), said(&plain));
                if value != profile_value {
                    found.push(SimulatedOnly { flow: place, key: key.name, value, profile_value });
                }
            }
        }
        found
    }

    /// The file's own profiles, each after the one it starts from.
    pub(crate) fn own(self) -> Vec<(String, Fields)> {
        self.profiles
            .into_iter()
            .filter(|profile| !profile.built_in)
            .filter_map(|profile| Some((profile.name, Arc::unwrap_or_clone(profile.fields?))))
            .collect()
    }

    /// Derives the file's profiles, each after the one it starts from.
    fn derive_all(&mut self, entries: &[Entry], problems: &mut Problems) {
        let mut entries: Vec<&Entry> = entries.iter().collect();
        entries.sort_by(|a, b| a.origin.cmp(&b.origin));
        entries.retain(|entry| self.may_be_added(entry, problems));
        let mut waiting: BTreeMap<&str, &Entry> =
            entries.iter().map(|&entry| (entry.key.as_str(), entry)).collect();
        let mut derived: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        for &entry in &entries {
            derived.entry(base_of(entry).unwrap_or("rfc")).or_default().push(entry);
        }
        // First come those that start from a built-in profile, then those that start from these,
        // and so on.
        let starts = |base: &&str| !waiting.contains_key(base);
        let bases: Vec<&str> = derived.keys().copied().filter(starts).collect();
        let mut ready: Vec<&Entry> =
            bases.iter().filter_map(|base| derived.remove(base)).flatten().collect();
        while !ready.is_empty() {
            ready.sort_by(|a, b| a.origin.cmp(&b.origin));
            let mut next = Vec::new();
            for entry in ready {
                let fields = self.derive(entry, problems);
                self.add(&entry.key, fields.map(Arc::new), Some(base_of(entry).unwrap_or("rfc")));
                waiting.remove(entry.key.as_str());
                next.extend(derived.remove(entry.key.as_str()).into_iter().flatten());
            }
            ready = next;
        }
        // The remaining profiles start from each other.
        for entry in entries.iter().filter(|entry| waiting.contains_key(entry.key.as_str())) {
            let place = entry.node.get("base").map_or(&entry.origin, |base| &base.origin);
            problems.add_with_help(
                place,
                format!("the profile {:?} is derived from itself", entry.key),
                format!("follow its `base`: {}", chain(&waiting, entry)),
            );
            self.add(&entry.key, None, Some(base_of(entry).unwrap_or("rfc")));
        }
    }

    fn may_be_added(&self, entry: &Entry, problems: &mut Problems) -> bool {
        let name = &entry.key;
        if !matches!(entry.node.value, Value::Table(_)) {
            let found = entry.node.value.describe();
            let message = format!("`{name}` expects a table, [profile.{name}], not {found}");
            problems.add(&entry.node.origin, message);
            return false;
        }
        if self.places.contains_key(name) {
            problems.add_with_help(
                &entry.origin,
                format!("{name:?} is a built-in profile"),
                format!("choose another name, and base = \"{name}\" to start from it"),
            );
            return false;
        }
        if !is_name(name) {
            problems.add(
                &entry.origin,
                format!("{name:?} is not a valid name: 1 to 64 letters, digits, `.`, `_` and `-`"),
            );
            return false;
        }
        true
    }

    fn derive(&self, entry: &Entry, problems: &mut Problems) -> Option<Fields> {
        let here = format!("[profile.{}]", key(&entry.key));
        let mut fields =
            Fields::read(&PROFILE, &here, &entry.node.origin, entry.node.entries(), problems);
        expand_window(&mut fields, self.is_linux(base_of(entry)), problems);
        fields.refuse_exclusive("application.read_delay_ms", problems);
        if let Some(setting) = fields.setting("slow_start").cloned()
            && fields.given("reno.slow_start").is_none()
        {
            fields.fill("reno.slow_start", setting, None);
        }
        let base = fields.text("base").unwrap_or("rfc").to_owned();
        let base = self.find(&base, "base", fields.origin_of("base"), problems)?;
        inherit(&mut fields, &base);
        fields.complete(problems);
        endpoint::check(&fields, problems);
        Some(fields)
    }

    /// The profile of that name; `None` if it does not exist or has a problem of its own.
    fn find(
        &self,
        name: &str,
        key: &str,
        origin: &Origin,
        problems: &mut Problems,
    ) -> Option<Arc<Fields>> {
        match self.places.get(name) {
            Some(&place) => self.profiles[place].fields.clone(),
            None => {
                let names = self.profiles.iter().map(|profile| profile.name.as_str());
                unknown_name(key, "profile", name, names, origin, problems);
                None
            }
        }
    }

    fn is_linux(&self, name: Option<&str>) -> bool {
        name.and_then(|name| self.places.get(name))
            .is_some_and(|&place| self.profiles[place].is_linux)
    }

    fn add(&mut self, name: &str, fields: Option<Arc<Fields>>, base: Option<&str>) {
        let built_in = base.is_none();
        let is_linux = if built_in { name.starts_with("linux-") } else { self.is_linux(base) };
        self.places.insert(name.to_owned(), self.profiles.len());
        self.profiles.push(Profile { name: name.to_owned(), fields, built_in, is_linux });
    }
}

/// A built-in profile, complete. Panics if it has a problem: a test reads each of them.
pub(crate) fn built_in(name: &str, text: &str) -> Fields {
    let mut problems = Problems::default();
    let root = Node::parse(&format!("profile {name}"), text, &mut problems);
    let mut fields = Fields::read(
        &PROFILE,
        &format!("profile {name}"),
        &root.origin,
        root.entries(),
        &mut problems,
    );
    fields.complete(&mut problems);
    fields.remove("base");
    endpoint::check(&fields, &mut problems);
    if let Err(error) = problems.finish() {
        panic!("built-in profile {name}: {error}");
    }
    fields
}

/// Adds what `base` has. Two keys say how the application reads: one that `fields` has replaces the
/// other of `base`.
fn inherit(fields: &mut Fields, base: &Fields) {
    let ways = ["read_rate_mbps", "application.read_delay_ms"];
    let own = ways.iter().any(|way| fields.setting(way).is_some());
    let replaced = ways.iter().filter(|way| own && fields.setting(way).is_none());
    let replaced: Vec<&str> = replaced.copied().collect();
    fields.inherit(base);
    for way in replaced {
        fields.remove(way);
    }
}

/// Upper end of the range of `send_buffer_bytes`.
const LARGEST_BUFFER: u64 = 1 << 40;

/// Replaces `window_bytes` by the keys that it stands for. SO_SNDBUF and SO_RCVBUF switch tuning
/// off, and Linux doubles the requested size (socket(7)). The sender may use all of it; half of the
/// receive buffer does not count as window.
fn expand_window(fields: &mut Fields, is_linux: bool, problems: &mut Problems) {
    let Some(window) = fields.count("window_bytes") else { return };
    // Together with one of the two it is refused; keep it so that the message can find it.
    if fields.refuse_exclusive("window_bytes", problems) {
        return;
    }
    let origin = fields.given("window_bytes").cloned();
    fields.remove("window_bytes");
    let send = if is_linux { window.saturating_mul(2) } else { window };
    for (name, count) in [
        ("send_buffer_bytes", send.min(LARGEST_BUFFER)),
        ("receive_buffer_bytes", window),
        ("buffer.initial_receive_bytes", 0),
    ] {
        fields.fill(name, Setting::Count(count), origin.clone());
    }
    if fields.given("buffer.send_factor").is_none() {
        fields.fill("buffer.send_factor", Setting::Count(0), origin);
    }
}

/// Raises buffers to what the first hop carries in a round trip (`buffer.from_first_hop`).
fn size_by_first_hop(flow: &mut Fields) {
    let up = flow.text("direction") == Some("up");
    let (send, receive) = match flow.choice_of("buffer.from_first_hop") {
        Some(FromFirstHop::Both) => (true, true),
        Some(FromFirstHop::Ue) => (up, !up),
        Some(FromFirstHop::None) | None => return,
    };
    let measured = flow.rate("buffer.first_hop_mbps").zip(flow.time("buffer.first_hop_rtt_ms"));
    let Some((rate, round_trip)) = measured else { return };
    let bits = u128::from(rate.bps()) * u128::from(round_trip.as_nanos());
    let bytes = u64::try_from(bits.div_ceil(8_000_000_000)).unwrap_or(u64::MAX).min(LARGEST_BUFFER);
    for (name, wanted) in [("send_buffer_bytes", send), ("receive_buffer_bytes", receive)] {
        if wanted && flow.count(name).is_some_and(|own| own < bytes) {
            let origin = flow.given("buffer.from_first_hop").cloned();
            flow.fill(name, Setting::Count(bytes), origin);
        }
    }
}

fn base_of(entry: &Entry) -> Option<&str> {
    match entry.node.get("base") {
        Some(Node { value: Value::Text(text), .. }) => Some(text),
        _ => None,
    }
}

/// The names from one profile to the one it starts from, and so on, until one repeats or there are
/// too many.
fn chain(entries: &BTreeMap<&str, &Entry>, from: &Entry) -> String {
    let mut names = vec![from.key.as_str()];
    let mut next = base_of(from);
    while let Some(name) = next {
        let again = names.contains(&name);
        if names.len() == LONGEST_CHAIN && !again {
            names.push("…");
            break;
        }
        names.push(name);
        if again {
            break;
        }
        next = entries.get(name).and_then(|entry| base_of(entry));
    }
    names.join(" → ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_profiles_are_read_once() {
        let read = || Profiles::read(None, &mut Problems::default());
        for (one, other) in read().profiles.iter().zip(&read().profiles) {
            let both = one.fields.as_ref().zip(other.fields.as_ref());
            assert!(both.is_some_and(|(one, other)| Arc::ptr_eq(one, other)), "{}", one.name);
        }
    }
}
