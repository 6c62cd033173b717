//! Draws scenario files from the JSON schema: which keys are present, and their values.

use airpath_base::Stream;
use airpath_scenario::{Source, parse, profiles, radio_presets};
use serde_json::{Map, Value, json};

/// How often a drawn file may be repaired before another one is drawn.
const MOST_REPAIRS: usize = 40;

/// Draws documents that [`parse`] accepts.
pub(crate) struct Drawer {
    schema: Value,
    random: Stream,
    /// Probability that an optional key is present.
    density: f64,
    /// Probability that a number is at or near one of its bounds.
    extremes: f64,
}

impl Drawer {
    pub(crate) fn new(schema: &Value, seed: u64, number: u64) -> Self {
        let random = Stream::new(seed, &format!("scenario {number}"));
        Self { schema: schema.clone(), random, density: 0.0, extremes: 0.0 }
    }

    /// Draws a scenario file. The schema does not express dependencies between keys: whatever
    /// `parse` rejects is removed. `None` if too little is left.
    pub(crate) fn draw(&mut self) -> Option<String> {
        self.density = self.pick(&[0.02, 0.05, 0.1, 0.2]);
        self.extremes = self.pick(&[0.0, 0.05, 0.3]);
        let document = self.document();
        let mut text = toml::to_string(&document).expect("JSON without null is TOML");
        for _ in 0..MOST_REPAIRS {
            let lines = match refused(&text) {
                lines if lines.is_empty() => return Some(text),
                lines => lines,
            };
            text = without(&text, &lines);
        }
        None
    }

    fn document(&mut self) -> Value {
        let mut document = Map::new();
        let duration = self.log_uniform(0.02, 3.0);
        let duration = if self.random.chance(0.05) { 6.0 + duration } else { duration };
        let mut run = self.table(&json!({ "$ref": "#/$defs/run" }));
        run["duration_s"] = json!(duration);
        document.insert("run".to_owned(), run);
        let kind = self.random.unit();
        if kind < 0.8 {
            let path = json!({ "down": self.list("stage", 4), "up": self.list("stage", 4) });
            document.insert("path".to_owned(), path);
        }
        if kind > 0.6 {
            document.insert("radio".to_owned(), self.radio());
        }
        let most = if self.random.chance(0.2) { 5 } else { 2 };
        let flows: Vec<Value> = (0..=self.below(most)).map(|_| self.flow(duration)).collect();
        document.insert("flow".to_owned(), json!(flows));
        if self.random.chance(0.1) {
            let profile = json!({ "$ref": "#/$defs/profile" });
            let own = json!({ "own": self.table(&profile), "owner": self.table(&profile) });
            document.insert("profile".to_owned(), own);
        }
        Value::Object(document)
    }

    fn radio(&mut self) -> Value {
        let mut radio = self.table(&json!({ "$ref": "#/$defs/radio" }));
        radio["preset"] = self.text("preset");
        if self.random.chance(0.5) {
            radio["ue"] = self.list("ue", 3);
        }
        radio
    }

    fn flow(&mut self, duration: f64) -> Value {
        let mut flow = self.table(&json!({ "$ref": "#/$defs/flow" }));
        if let Some(start) = flow.get_mut("start_s") {
            *start = json!(duration * self.random.unit() * 0.9);
        }
        if let Some(own) = flow.get_mut("duration_s") {
            *own = json!(duration * (0.05 + self.random.unit()));
        }
        // The amount in flight determines how long a scenario takes to run.
        if let Some(segment) = flow.get_mut("mss_bytes")
            && segment.as_u64() < Some(50)
        {
            *segment = json!(50);
        }
        if ["bulk", "file"].contains(&flow["kind"].as_str().unwrap_or_default())
            && self.random.chance(0.9)
        {
            flow["window_bytes"] = json!(self.log_uniform(3e3, 1e6) as u64);
        }
        if let Some(streams) = flow.get_mut("streams") {
            *streams = json!(1 + self.random.bits() % 6);
        }
        flow
    }

    fn list(&mut self, name: &str, most: u64) -> Value {
        let schema = json!({ "$ref": format!("#/$defs/{name}") });
        (0..self.below(most + 1)).map(|_| self.table(&schema)).collect()
    }

    /// Draws a table from its schema.
    fn table(&mut self, schema: &Value) -> Value {
        let schema = self.resolved(schema);
        let Some(properties) = schema["properties"].as_object() else {
            let kinds = schema["oneOf"].as_array().expect("a table has keys or variants");
            let kind = self.below(kinds.len() as u64) as usize;
            return self.table(&kinds[kind]);
        };
        let names = |of: &Value| -> Vec<String> {
            let names = of["required"].as_array().into_iter().flatten();
            names.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut wanted = names(&schema);
        // Exactly one of these keys.
        let either: Vec<String> =
            schema["oneOf"].as_array().into_iter().flatten().flat_map(names).collect();
        if !either.is_empty() {
            wanted.push(either[self.below(either.len() as u64) as usize].clone());
        }
        let mut table = Map::new();
        for (name, schema) in properties {
            let is_wanted = wanted.contains(name);
            let is_drawn = is_wanted || self.random.chance(self.density);
            let is_out = schema["deprecated"] == json!(true)
                || (either.contains(name) && !is_wanted)
                || ["core", "emulation", "program", "enabled"].contains(&name.as_str());
            if is_drawn && !is_out {
                table.insert(name.clone(), self.value(name, schema));
            }
        }
        Value::Object(table)
    }

    fn value(&mut self, name: &str, schema: &Value) -> Value {
        let schema = self.resolved(schema);
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if schema.get("type").is_none()
            && let Some(kinds) = schema["oneOf"].as_array()
        {
            let kind = self.below(kinds.len() as u64) as usize;
            return self.value(name, &kinds[kind]);
        }
        if let Some(values) = schema["enum"].as_array() {
            return values[self.below(values.len() as u64) as usize].clone();
        }
        match schema["type"].as_str() {
            Some("boolean") => json!(self.random.chance(0.5)),
            Some("integer") => json!(self.number(&schema).round() as u64),
            Some("number") => json!(self.number(&schema)),
            Some("array") => {
                let items = &schema["items"];
                (0..=self.below(2)).map(|_| self.table(items)).collect()
            }
            Some("object") => self.table(&schema),
            _ => self.text(name),
        }
    }

    /// A number at a bound, just inside it, or an ordinary value.
    fn number(&mut self, schema: &Value) -> f64 {
        let bound = |name: &str| schema[name].as_f64();
        let open = bound("exclusiveMinimum");
        let least = bound("minimum").or(open).unwrap_or(f64::MIN);
        let most = bound("maximum").unwrap_or(f64::MAX);
        let is_whole = schema["type"] == json!("integer");
        let step = if is_whole { 1.0 } else { 1e-6_f64.min((most - least) / 10.0) };
        let lowest = if open.is_some() { least + step } else { least };
        if self.random.chance(self.extremes) {
            return match self.below(5) {
                0 => lowest,
                1 => lowest + step,
                2 => most,
                3 => most - step,
                _ => self.log_uniform(lowest.max(step), most.max(2.0 * step)).clamp(lowest, most),
            };
        }
        match schema["default"].as_f64() {
            Some(default) if default > 0.0 => default * self.log_uniform(0.25, 4.0),
            _ if most <= 1.0 => most * self.random.unit().powi(2),
            _ => self.log_uniform(lowest.max(0.1), most.min(200.0).max(lowest.max(0.2))),
        }
        .clamp(lowest, most)
    }

    /// A value for what the schema calls a text: in the syntax of the keys themselves.
    fn text(&mut self, name: &str) -> Value {
        let presets: Vec<&str> = radio_presets().map(|(name, _)| name).collect();
        let profiles: Vec<&str> = profiles().chain(["own"]).collect();
        let texts: &[&str] = match name {
            "preset" => &presets,
            "profile" | "base" => &profiles,
            "file" => &["builtin:sawtooth"],
            "packets" => &["1", "3, 10-20", "2-9"],
            "write_times_s" => &["0", "0, 0.1, 0.5", "0.2"],
            "tdd_pattern" => &["DDDSU 10:2:2", "DDSUU", "DSUUU 6:4:4"],
            "ue" => &["ue-0", "ue-1", "phone"],
            "to" | "cell" => &["cell-0", "cell-1"],
            _ => &["a", "b", "phone", "c.d", "cell-1"],
        };
        json!(texts[self.below(texts.len() as u64) as usize])
    }

    fn resolved(&self, schema: &Value) -> Value {
        match schema["$ref"].as_str() {
            Some(name) => self.schema.pointer(&name[1..]).expect("a definition").clone(),
            None => schema.clone(),
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.bits() % end
    }

    fn pick(&mut self, values: &[f64]) -> f64 {
        values[self.below(values.len() as u64) as usize]
    }

    fn log_uniform(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.random.unit())
    }
}

/// Lines of a file in which `parse` rejects something, counted from 0.
pub(crate) fn refused(text: &str) -> Vec<usize> {
    let source = Source { name: "drawn.toml", text, directory: None };
    let Err(error) = parse(&source, &[]) else { return Vec::new() };
    let line = |problem: &airpath_scenario::Problem| match problem.origin {
        airpath_scenario::Origin::File { line, .. } => line - 1,
        airpath_scenario::Origin::Set { .. } => unreachable!("nothing is set"),
    };
    error.problems.iter().map(line).collect()
}

/// The file without these lines. Removing the header of a table removes its keys.
pub(crate) fn without(text: &str, lines: &[usize]) -> String {
    let mut kept = String::new();
    let mut in_removed = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            in_removed = lines.contains(&number);
        }
        if !in_removed && !lines.contains(&number) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}
