//! How causes are planted: each as an edit of a scenario without it, drawn so that a larger `severity`
//! (0 to 1) does more harm.

mod hosts;
mod packets;
mod path;
mod radio;

pub(crate) use packets::into_vpn;

use crate::bases::{Access, Known};
use crate::draft::{Draft, Random, Table, number, quoted, stage};

/// All of them.
pub(crate) fn plants() -> impl Iterator<Item = &'static Plant> {
    path::PATH.iter().chain(packets::PACKETS).chain(hosts::ENDS).chain(radio::CELLS)
}

/// Puts the cause into a scenario.
pub(crate) type Edit = Box<dyn Fn(&mut Draft)>;

/// A cause that may be planted, and the bases that it may be planted into.
pub(crate) struct Plant {
    pub(crate) cause: &'static str,
    pub(crate) into: &'static [Access],
    /// The most flows that the base may have, and the direction of its data, where only one will
    /// do.
    pub(crate) flows: usize,
    pub(crate) up: Option<bool>,
    /// Removes what the plant brings along in the base, where that might be a cause itself.
    pub(crate) brings: Option<fn(&mut Draft)>,
    /// Prepares the base without the cause, and returns the edit that plants it.
    pub(crate) edit: Planting,
}

/// Plants with a severity from 0 to 1.
type Planting = fn(&mut Random, f64, &mut Draft, &Known) -> Edit;

impl Plant {
    /// A plant for data in either direction that brings nothing along.
    pub(crate) const fn new(
        cause: &'static str,
        into: &'static [Access],
        flows: usize,
        edit: Planting,
    ) -> Self {
        Self { cause, into, flows, up: None, brings: None, edit }
    }

    pub(crate) const fn up(mut self, up: bool) -> Self {
        self.up = Some(up);
        self
    }

    pub(crate) const fn brings(mut self, brings: fn(&mut Draft)) -> Self {
        self.brings = Some(brings);
        self
    }
}

/// A value that rises from `low` to `high` with severity, geometrically.
fn scaled(severity: f64, low: f64, high: f64) -> f64 {
    (low.ln() + severity * (high.ln() - low.ln())).exp()
}

/// Inserts a stage somewhere in the direction of the data, or in the other direction.
pub(crate) fn insert(random: &mut Random, there: bool, stage: Table) -> Edit {
    let place = random.between(0.0, 1.0);
    Box::new(move |draft| {
        let stages = if there { &mut draft.there } else { &mut draft.back };
        let at = (place * (stages.len() + 1) as f64) as usize;
        stages.insert(at.min(stages.len()), stage.clone());
    })
}

/// Inserts a stage somewhere in either direction.
pub(crate) fn insert_in_either(random: &mut Random, stage: Table) -> Edit {
    let there = random.chance(0.5);
    insert(random, there, stage)
}

/// Inserts a stage in both directions, next to the sender of the data.
pub(crate) fn at_sender(stage: Table) -> Edit {
    Box::new(move |draft| {
        draft.there.insert(0, stage.clone());
        draft.back.push(stage.clone());
    })
}

/// Inserts a stage in both directions, next to the server.
pub(crate) fn at_server(stage: Table) -> Edit {
    Box::new(move |draft| {
        let [down, up] = draft.down_and_up();
        down.insert(0, stage.clone());
        up.push(stage.clone());
    })
}

/// Inserts a stage in both directions, next to the UE.
fn at_ue(stage: Table) -> Edit {
    Box::new(move |draft| {
        let [down, up] = draft.down_and_up();
        down.push(stage.clone());
        up.insert(0, stage.clone());
    })
}

pub(crate) fn of_flows(key: &'static str, value: String) -> Edit {
    Box::new(move |draft| draft.transfers().for_each(|flow| flow.set(key, &value)))
}

/// Gives the link a plain queue of this many bytes.
fn plain_queue(draft: &mut Draft, bytes: f64) {
    let keys = ["aqm", "codel_target_ms", "codel_interval_ms"];
    if draft.radio.is_empty() {
        let link = draft.there.iter_mut().find(|one| one.get("stage") == Some("\"link\""));
        let link = link.expect("a wire has a link");
        keys.iter().for_each(|key| link.remove(key));
        link.set("queue_bytes", number(bytes.max(1600.0).round()));
    } else {
        let buffer = draft.radio_of_data("rlc");
        keys.iter().for_each(|key| buffer.remove(key));
        buffer.set("aqm", "\"drop-tail\"");
        buffer.set("buffer_bytes", number(bytes.max(1600.0).round()));
    }
}

/// Packets that a ring with the length of the bandwidth-delay product holds.
fn ring_packets(known: &Known) -> f64 {
    (known.bdp_bytes() / 1500.0).max(30.0).round()
}

/// Gives transfers a loss-based congestion control, and returns a stage that loses so few packets
/// that it hardly matters to them. The window that Reno maintains is 1.22 / sqrt(p) segments
/// (Mathis 1997); `low` and `high` bound p times its square.
fn rare_loss(
    random: &mut Random,
    severity: f64,
    draft: &mut Draft,
    known: &Known,
    (low, high): (f64, f64),
) -> Table {
    let control = random.one_of(&["\"cubic\"", "\"reno\""]);
    draft.transfers().for_each(|flow| flow.set("congestion", control));
    let window = (known.bdp_bytes() / 1448.0).max(6.0);
    let share = scaled(severity, low, high) / (window * window);
    stage("loss").with("probability", number(share.min(0.03)))
}

fn without_loss(draft: &mut Draft) {
    draft.there.retain(|one| one.get("stage") != Some("\"loss\""));
}

/// Gives the bottleneck a queue as it should be: the bandwidth-delay product.
fn managed_queue(draft: &mut Draft, known: &Known) {
    plain_queue(draft, known.bdp_bytes().max(30_000.0));
}

pub(crate) fn only(draft: &mut Draft, flow: Table) {
    draft.flows = vec![flow];
}

pub(crate) fn datagrams(rate_mbps: f64) -> Table {
    Table::of(&[("kind", "\"udp\""), ("rate_mbps", &number(rate_mbps))])
}

pub(crate) fn ping(direction: &str, interval_ms: f64) -> Table {
    Table::of(&[
        ("kind", "\"ping\""),
        ("direction", &quoted(direction)),
        ("interval_ms", &number(interval_ms)),
    ])
}

pub(crate) fn file(bytes: f64) -> Table {
    Table::of(&[("kind", "\"file\""), ("profile", "\"linux-6.18\"")])
        .with("size_bytes", number(bytes.round()))
        .with("start_s", "0.5")
}

/// A stream of datagrams from the server, which the UE requested, or which comes unasked.
fn stream(random: &mut Random, draft: &mut Draft, known: &Known, opened_by: &str) {
    let rate = known.rate_mbps * random.between(0.1, 0.5);
    only(draft, datagrams(rate).with("opened_by", quoted(opened_by)));
}

pub(crate) fn middlebox(kind: &'static str, timeout_s: f64, forgets: bool) -> Edit {
    Box::new(move |draft| {
        let mut out = stage(kind).with("timeout_s", number(timeout_s));
        if forgets {
            out.set("inward_refreshes", false);
        }
        draft.back.push(out);
        draft.there.insert(0, stage(kind));
    })
}

/// Adds another cell like the first, and a cell change every few seconds.
pub(crate) fn two_cells(random: &mut Random, draft: &mut Draft) {
    draft.radio("").set("name", "\"one\"");
    let preset = draft.radio("").get("preset").expect("a radio has a preset").to_owned();
    let mut two = Table::of(&[("name", "\"two\"")]);
    two.set("preset", preset);
    for key in ["bandwidth_mhz", "layers_down", "layers_up"] {
        if let Some(value) = draft.radio("cell").get(key).map(str::to_owned) {
            two.set(&format!("cell.{key}"), value);
        }
    }
    draft.neighbours = vec![two];
    let every = random.between(3.0, 5.0);
    for (to, at) in [("\"two\"", 1.5), ("\"one\"", 1.5 + every / 2.0)] {
        let change =
            Table::default().with("at_s", number(at)).with("every_s", number(every)).with("to", to);
        draft.handovers.push(change);
    }
}

/// Splits bearers over the cell and another one like it.
fn two_legs(draft: &mut Draft) {
    let preset = draft.radio("").get("preset").expect("a radio has a preset").to_owned();
    draft.neighbours = vec![Table::of(&[("preset", &preset)])];
    draft.radio("split").set("t_reordering_ms", 500);
}

/// Makes blocks fail at a given rate, whatever the MCS, which follows the channel alone.
fn same_mcs(draft: &mut Draft, bler: &str) {
    let adaptation = draft.radio_of_data("link_adaptation");
    adaptation.set("outer_loop_step_db", 0);
    adaptation.set("fixed_bler", bler);
}
