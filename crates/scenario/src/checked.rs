//! Checks the whole document: reads each table, completes it and compares it with the others.

use std::collections::BTreeMap;
use std::path::Path;

use airpath_base::Direction;

use crate::Origin;
use crate::check;
use crate::flow::{flow_ids, is_tcp};
use crate::list::List;
use crate::model::SimulatedOnly;
use crate::node::{Node, Value};
use crate::numbers;
use crate::problem::Problems;
use crate::profiles::Profiles;
use crate::programs;
use crate::proxy;
use crate::radio::{self, Radio};
use crate::read::Fields;
use crate::spec::{EMULATION, FLOW, PATH, ROOT, RUN, STAGE};
use crate::stage::Stage;
use crate::subscription::{self, Core};
use crate::traces::Traces;
use crate::value::{Setting, is_name_char};

/// A checked document: every key with its value.
pub(crate) struct Checked {
    /// The top level.
    pub(crate) root: Fields,
    /// `[run]`.
    pub(crate) run: Fields,
    /// `[emulation]`, and whether the file has it.
    pub(crate) emulation: (Fields, bool),
    /// `[core]`.
    pub(crate) core: Option<Core>,
    /// `[[path.down]]`.
    pub(crate) down: List<Stage>,
    /// `[[path.up]]`.
    pub(crate) up: List<Stage>,
    /// `[radio]`.
    pub(crate) radio: Option<Radio>,
    /// `[profile.NAME]`, each after the one it starts from.
    pub(crate) profiles: Vec<(String, Fields)>,
    /// `[[flow]]`.
    pub(crate) flows: List<Fields>,
    /// `[[program]]`.
    pub(crate) programs: List<Fields>,
    /// The traces that the stages' `file` keys name.
    pub(crate) traces: Traces,
    /// Keys of the flows that only a simulation follows.
    pub(crate) simulated_only: Vec<SimulatedOnly>,
}

impl Checked {
    /// Checks a document. The result may be used only if no problem was reported.
    pub(crate) fn read(
        name: &str,
        directory: Option<&Path>,
        root: &Node,
        problems: &mut Problems,
    ) -> Self {
        let mut top = Fields::read(&ROOT, ROOT.header, &root.origin, root.entries(), problems);
        top.complete(problems);
        name_and_title(&mut top, name);
        let run = read_run(root, problems);
        let emulation = read_emulation(root, problems);
        let mut traces = Traces::default();
        let profiles = Profiles::read(root.get("profile"), problems);
        let (down, up) = read_path(root, directory, &mut traces, &profiles, problems);
        check::proxy::check(&down.on, &up.on, problems);
        let radio = Radio::read(root, directory, &mut traces, problems);
        let core = subscription::read(root, directory, radio.as_ref(), problems);
        subscription::check_gtpu(&emulation.0, root, radio.as_ref(), problems);
        let flows = read_flows(root, &run, &profiles, radio.as_ref(), problems);
        let programs = programs::read(root, radio.as_ref(), problems);
        check::queues::check(&down.on, Direction::Downlink, &flows.on, problems);
        check::queues::check(&up.on, Direction::Uplink, &flows.on, problems);
        check::middleboxes::check(&down.on, &up.on, problems);
        for (stages, direction) in [(&down.on, Direction::Downlink), (&up.on, Direction::Uplink)] {
            check::tunnels::check(stages, direction, problems);
            check::stalls::check(stages, problems);
        }
        check::stalls::check_cpus(&down.on, &up.on, problems);
        check::queues::check_buffers(radio.as_ref(), &flows.on, problems);
        if problems.is_empty() {
            let (down, up) = (&down.on, &up.on);
            check::time::check(down, up, radio.is_some(), &run, &flows.on, problems);
        }
        let simulated_only = profiles.simulated_only(flows.in_order());
        let profiles = profiles.own();
        Self {
            root: top,
            run,
            emulation,
            core,
            down,
            up,
            radio,
            profiles,
            flows,
            programs,
            traces,
            simulated_only,
        }
    }
}

fn name_and_title(root: &mut Fields, file: &str) {
    if root.text("name").is_none() {
        root.fill("name", Setting::Text(stem(file)), None);
    }
    if root.text("title").is_none()
        && let Some(name) = root.text("name")
    {
        root.fill("title", Setting::Text(name.to_owned()), None);
    }
}

/// A scenario name made from a file name: its last part, without `.toml` and odd characters.
fn stem(file: &str) -> String {
    let last = Path::new(file).file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let stem = last.strip_suffix(".toml").unwrap_or(&last);
    let name: String =
        stem.chars().map(|char| if is_name_char(char) { char } else { '-' }).take(64).collect();
    if name.is_empty() { "scenario".to_owned() } else { name }
}

fn read_run(root: &Node, problems: &mut Problems) -> Fields {
    let (origin, entries) = root.table("run", RUN.header, problems);
    let mut run = Fields::read(&RUN, RUN.header, origin, entries, problems);
    run.complete(problems);
    if let (Some(duration), Some(interval)) =
        (run.time("duration_s"), run.time("sample_interval_ms"))
    {
        const MOST: u64 = 10_000_000;
        let samples = duration.as_nanos() / interval.as_nanos().max(1);
        if samples > MOST {
            problems.add_with_help(
                run.origin_of("sample_interval_ms"),
                format!(
                    "the run would have {samples} sample intervals; at most {MOST} are allowed"
                ),
                "shorten `duration_s` or raise `sample_interval_ms`",
            );
        }
    }
    run
}

fn read_emulation(root: &Node, problems: &mut Problems) -> (Fields, bool) {
    let (origin, entries) = root.table("emulation", EMULATION.header, problems);
    let mut emulation = Fields::read(&EMULATION, EMULATION.header, origin, entries, problems);
    emulation.complete(problems);
    (emulation, root.get("emulation").is_some())
}

fn read_path(
    root: &Node,
    directory: Option<&Path>,
    traces: &mut Traces,
    profiles: &Profiles,
    problems: &mut Problems,
) -> (List<Stage>, List<Stage>) {
    let (origin, entries) = root.table("path", PATH.header, problems);
    Fields::read(&PATH, PATH.header, origin, entries, problems);
    let mut stages_of = |direction: Direction| -> List<Stage> {
        let header = &format!("[[path.{direction}]]");
        let path = root.get("path");
        let stages = path.map(|path| path.tables(direction.name(), header, problems));
        let mut read = List::new();
        for (index, (origin, entries)) in stages.unwrap_or_default().into_iter().enumerate() {
            let mut fields = Fields::read(&STAGE, header, origin, entries, problems);
            let is_proxy = fields.variant == Some(proxy::STAGE);
            if is_proxy {
                profiles.apply(&mut fields, problems);
            }
            fields.complete(problems);
            if is_proxy {
                check::endpoint::check(&fields, problems);
            }
            let trace = fields.text("file").and_then(|file| {
                let loaded = traces.load(file, directory);
                loaded.map_err(|error| error.report(fields.origin_of("file"), problems)).ok()
            });
            if let Some(Err(fault)) = fields.text("packets").map(numbers::parse) {
                let help = "e.g. packets = \"1, 40-45\"; the first packet is 1";
                problems.add_with_help(
                    fields.origin_of("packets"),
                    format!("`packets`: {fault}"),
                    help,
                );
            }
            let mut stage = Stage { index, fields, trace };
            check::middleboxes::complete(&mut stage, direction, problems);
            let enabled = stage.fields.enabled();
            read.push(stage, enabled);
        }
        read
    };
    (stages_of(Direction::Downlink), stages_of(Direction::Uplink))
}

fn read_flows(
    root: &Node,
    run: &Fields,
    profiles: &Profiles,
    radio: Option<&Radio>,
    problems: &mut Problems,
) -> List<Fields> {
    let mut flows: List<Fields> = List::new();
    let tables = root.tables("flow", FLOW.header, problems);
    let wrong = |flow: &Node| !matches!(&flow.value, Value::List(items) if items.is_empty());
    if tables.is_empty() && !root.get("flow").is_some_and(wrong) {
        problems.add_with_help(
            root.get("flow").map_or(&root.origin, |flow| &flow.origin),
            "a scenario needs at least one [[flow]]",
            "e.g. [[flow]] with kind = \"bulk\"",
        );
    }
    let mut ids: BTreeMap<String, Origin> = BTreeMap::new();
    for (index, (origin, entries)) in tables.into_iter().enumerate() {
        let mut flow = Fields::read(&FLOW, FLOW.header, origin, entries, problems);
        if flow.variant.is_some_and(is_tcp) {
            profiles.apply(&mut flow, problems);
        }
        flow.refuse_exclusive("size_bytes", problems);
        flow.complete(problems);
        if let (None, Some(kind)) = (flow.text("id"), flow.variant) {
            flow.fill("id", Setting::Text(format!("{kind}-{index}")), None);
        }
        if flow.variant.is_some_and(is_tcp) {
            check::endpoint::check(&flow, problems);
        }
        check_start(&flow, run, problems);
        if let Some(Err(fault)) = flow.text("write_times_s").map(numbers::times) {
            let help = "e.g. write_times_s = \"0, 0.5, 2\", in seconds after `start_s`";
            let message = format!("`write_times_s`: {fault}");
            problems.add_with_help(flow.origin_of("write_times_s"), message, help);
        }
        // A radio that cannot be read has already been reported.
        if radio.is_some() || root.get("radio").is_none() {
            radio::choose_ue(radio, &mut flow, problems);
        }
        for id in flow_ids(&flow) {
            if let Some(twin) = ids.get(&id) {
                problems.add_with_help(
                    flow.origin_of("id"),
                    format!("two flows have the id {id:?}"),
                    format!("the other one is at {twin}"),
                );
            } else {
                ids.insert(id, flow.origin_of("id").clone());
            }
        }
        let enabled = flow.enabled();
        flows.push(flow, enabled);
    }
    if flows.on.is_empty()
        && let Some(first) = flows.in_order().next()
    {
        problems.add_with_help(
            first.origin_of("enabled"),
            "every [[flow]] has enabled = false",
            "a scenario needs at least one enabled flow",
        );
    }
    flows
}

fn check_start(flow: &Fields, run: &Fields, problems: &mut Problems) {
    if let (Some(start), Some(end)) = (flow.time("start_s"), run.time("duration_s"))
        && start >= end
    {
        problems.add_with_help(
            flow.origin_of("start_s"),
            format!(
                "the flow starts at {} s, but the run ends at {} s",
                start.as_secs_f64(),
                end.as_secs_f64()
            ),
            format!("`run.duration_s`: {}", run.origin_of("duration_s")),
        );
    }
}
