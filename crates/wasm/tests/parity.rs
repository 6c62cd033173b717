//! Tests the native build against WebAssembly: the same requests get the same bytes, document and
//! tables.
//!
//! The engine is the one that `tools/setup explorer` has built; Node runs it.

use std::fmt::Write as _;
use std::io::{BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::SystemTime;

use airpath_wasm::answer;
use serde_json::{Value, json};

/// The engine running in Node.
struct Node {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// An answer from it.
struct Said {
    seconds: f64,
    document: String,
    tables: Vec<u8>,
}

impl Node {
    fn start(engine: &Path) -> Self {
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node.mjs");
        let mut process = Command::new("node")
            .args([&driver, engine])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Node was there when it was looked for");
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        Self { process, input, output }
    }

    fn ask(&mut self, request: &Value) -> Said {
        let input = self.input.as_mut().expect("it is open until the end");
        writeln!(input, "{request}").expect("Node reads requests");
        let mut head = [0; 32];
        self.output.read_exact(&mut head).expect("Node answers");
        let number = |at: usize| {
            f64::from_le_bytes(head[8 * at..8 * at + 8].try_into().expect("8 bytes are a number"))
        };
        let (mut document, mut tables) = (vec![0; number(1) as usize], vec![0; number(2) as usize]);
        self.output.read_exact(&mut document).expect("the document follows");
        self.output.read_exact(&mut tables).expect("the tables follow");
        let document = String::from_utf8(document).expect("it is JSON");
        assert!(number(3) == 0.0, "{}: {document}", name(request));
        Said { seconds: number(0), document, tables }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It ends when its input ends.
        self.input = None;
        let _ = self.process.wait();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The engine, if it can be run here and is not older than its sources.
fn engine(test: &str) -> Option<PathBuf> {
    let file = root().join("python/airpath/explorer/assets/airpath.wasm");
    let name = file.display().to_string();
    if !airpath_testing::has(test, &["node", &name]) {
        return None;
    }
    let built = changed(&file);
    let newer = sources().into_iter().find(|source| changed(source) > built);
    if let Some(newer) = newer {
        let reason = format!("{} is newer than the engine: tools/setup explorer", newer.display());
        airpath_testing::skip(test, &reason);
        return None;
    }
    Some(file)
}

fn changed(file: &Path) -> SystemTime {
    file.metadata().and_then(|known| known.modified()).expect("a file has a time")
}

/// The sources of the engine: this crate, the crates it uses, and the scenarios compiled into it.
fn sources() -> Vec<PathBuf> {
    let crates = [
        "base", "queue", "path", "radio", "tcp", "record", "metrics", "scenario", "network", "sim",
        "findings", "wasm",
    ];
    let mut open: Vec<PathBuf> =
        crates.iter().map(|name| root().join(format!("crates/{name}/src"))).collect();
    open.push(root().join("scenarios"));
    let mut files = Vec::new();
    while let Some(directory) = open.pop() {
        for entry in directory.read_dir().expect("it is part of the repository") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

fn name(request: &Value) -> String {
    format!("{} {}", request["op"].as_str().unwrap_or(""), request["name"].as_str().unwrap_or(""))
}

/// Sends the request to both and compares the bytes. Returns how long each took, in seconds.
#[allow(clippy::disallowed_methods, reason = "it measures how long both take")]
fn compare(node: &mut Node, request: &Value) -> [f64; 2] {
    let began = std::time::Instant::now();
    let native = answer(&request.to_string(), &mut |_| true);
    let seconds = began.elapsed().as_secs_f64();
    let said = node.ask(request);
    assert!(
        native.document == said.document,
        "{}: the documents differ\nnative {}\nwasm   {}",
        name(request),
        from(&native.document, &said.document),
        from(&said.document, &native.document),
    );
    assert!(native.tables == said.tables, "{}: the tables differ", name(request));
    [seconds, said.seconds]
}

/// The text from shortly before the place where it differs from another one.
fn from(text: &str, other: &str) -> String {
    let place = text.chars().zip(other.chars()).position(|(one, two)| one != two);
    text.chars().skip(place.unwrap_or(0).saturating_sub(40)).take(160).collect()
}

fn simulate(name: &str, text: &str, sets: &[&str]) -> Value {
    json!({ "op": "simulate", "name": name, "text": text, "sets": sets })
}

fn shipped(name: &str) -> &'static str {
    let all = airpath_scenario::shipped().iter();
    all.clone().find(|(known, _)| *known == name).expect("it is shipped").1
}

/// A small selection: problems of scenarios, the contents of a file, short runs, findings.
#[test]
fn webassembly_says_the_same() {
    let Some(engine) = engine("webassembly_says_the_same") else { return };
    let mut node = Node::start(&engine);
    for op in ["shipped", "schema", "reference", "nonsense"] {
        compare(&mut node, &json!({ "op": op }));
    }
    for text in ["[[flow]]\nkind = 1", "[run\n", "", "[[flow]]\nkind = \"bulk\"\nwindw = 3\n"] {
        compare(&mut node, &json!({ "op": "parse", "name": "wrong.toml", "text": text }));
    }
    for (name, text) in airpath_scenario::shipped() {
        compare(&mut node, &json!({ "op": "parse", "name": name, "text": text }));
    }
    let short = ["run.duration_s=3", "run.ack_table=true"];
    for name in ["bufferbloat", "two-flows", "lte-20", "umts-hspa", "evdo", "jitter-reorder"] {
        compare(&mut node, &simulate(name, shipped(name), &short));
    }
    let text = shipped("bufferbloat");
    let sets = ["run.duration_s=5"];
    let given = json!({ "name": "bufferbloat", "text": text, "sets": sets, "budget": "quick" });
    for more in [
        json!({ "op": "explain" }),
        json!({ "op": "compare", "variants": [["path.down.0.queue_packets=20"]], "seeds": [1, 2] }),
        json!({ "op": "packets", "from_s": 0, "to_s": 1, "most": 500 }),
    ] {
        let mut request = given.clone();
        for (key, value) in more.as_object().expect("it is one") {
            request[key] = value.clone();
        }
        compare(&mut node, &request);
    }
}

/// Every shipped scenario, one seed of each scenario of the studies, findings; and the times of both.
#[test]
#[ignore = "`make wasm-parity` runs it, optimised"]
#[allow(clippy::print_stdout, reason = "it is a table for people")]
fn webassembly_has_the_same_tables() {
    let engine = engine("webassembly_has_the_same_tables")
        .expect("Node and the engine are needed: tools/setup explorer");
    let mut node = Node::start(&engine);
    let mut all: Vec<(String, String)> = airpath_scenario::shipped()
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    for study in sorted(&root().join("python/airpath/studies")) {
        for file in sorted(&study).into_iter().filter(|file| is_scenario(file)) {
            let title = |path: &Path| path.file_name().expect("it has one").display().to_string();
            let text = std::fs::read_to_string(&file).expect("a study is text");
            all.push((format!("{}/{}", title(&study), title(&file)), text));
        }
    }
    // Once before it counts: Node optimises frequently used code.
    compare(&mut node, &simulate("warm", shipped("two-flows"), &[]));
    let (mut table, mut ratios, mut sums) = (String::new(), Vec::new(), [0.0; 2]);
    for (name, text) in &all {
        let [native, wasm] = compare(&mut node, &simulate(name, text, &[]));
        sums = [sums[0] + native, sums[1] + wasm];
        ratios.push(wasm / native);
        writeln!(table, "{name:44} {native:8.3} s {wasm:8.3} s {:6.2}", wasm / native)
            .expect("memory is enough");
    }
    for name in ["bufferbloat", "random-loss", "lte-20"] {
        let request = json!({ "op": "explain", "name": name, "text": shipped(name),
            "sets": ["run.duration_s=10"], "budget": "quick" });
        compare(&mut node, &request);
    }
    ratios.sort_by(f64::total_cmp);
    println!("{:44} {:>10} {:>10} {:>6}\n{table}", "scenario", "native", "wasm", "ratio");
    println!(
        "{} scenarios have the same tables; wasm takes {:.2} times as long on the whole, {:.2} in \
         the median",
        all.len(),
        sums[1] / sums[0],
        ratios[ratios.len() / 2],
    );
}

fn sorted(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.read_dir().expect("it is part of the repository");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name != "__pycache__"));
    paths.sort();
    paths
}

fn is_scenario(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.display().to_string()).unwrap_or_default();
    name.starts_with("scenario") && name.ends_with(".toml")
}
