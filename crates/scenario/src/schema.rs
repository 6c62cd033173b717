//! The JSON schema (draft 2020-12) of a scenario file, for editors. It has every key, type, range
//! and default; conditions between keys are left to [`parse`](crate::parse).

use serde_json::{Map, Value, json};

use crate::spec::{
    CARRIER, CELL, CORE, Default, EMULATION, FASTEST_BPS, FLOW, Group, HANDOVER, Key, Kind,
    MOBILITY, NEIGHBOUR, Need, OUTAGE, PARTS, PATH, PROFILE, PROGRAM, Part, RADIO, ROOT, RUN, Rule,
    SPLIT, STAGE, SUBTABLES, Table, TimeUnit, UE,
};

/// The schema as a JSON document.
pub fn json_schema() -> Value {
    let stages = json!({ "type": "array", "items": { "$ref": "#/$defs/stage" } });
    let mut path = table(&PATH, None);
    path["properties"] = described(&PATH, &|_| stages.clone());
    let mut radio = table(&RADIO, None);
    radio["properties"] = parts(&RADIO);
    let mut ue = table(&UE, None);
    ue["properties"] = parts(&UE);
    let mut carrier = table(&CARRIER, None);
    carrier["properties"] = parts(&CARRIER);
    let mut neighbour = table(&NEIGHBOUR, None);
    neighbour["properties"] = parts(&NEIGHBOUR);
    let mut root = table(&ROOT, None);
    root["properties"] = described(&ROOT, &|key| match key.name {
        "run" => json!({ "$ref": "#/$defs/run" }),
        "emulation" => json!({ "$ref": "#/$defs/emulation" }),
        "core" => json!({ "$ref": "#/$defs/core" }),
        "path" => json!({ "$ref": "#/$defs/path" }),
        "radio" => json!({ "$ref": "#/$defs/radio" }),
        "flow" => {
            json!({ "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/flow" } })
        }
        "program" => json!({ "type": "array", "items": { "$ref": "#/$defs/program" } }),
        "profile" => json!({
            "type": "object",
            "additionalProperties": { "$ref": "#/$defs/profile" },
            "propertyNames": { "pattern": NAME_PATTERN },
        }),
        _ => value(key),
    });
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("airpath scenario");
    root["$defs"] = json!({
        "run": table(&RUN, None),
        "core": table(&CORE, None),
        "emulation": table(&EMULATION, None),
        "path": path,
        "stage": variants(&STAGE),
        "flow": variants(&FLOW),
        "program": table(&PROGRAM, None),
        "profile": table(&PROFILE, None),
        "radio": radio,
        "cell": either(&CELL),
        "ue": ue,
        "carrier": carrier,
        "neighbour": neighbour,
        "handover": table(&HANDOVER, None),
        "outage": table(&OUTAGE, None),
        "mobility": table(&MOBILITY, None),
        "split": table(&SPLIT, None),
    });
    for part in PARTS {
        root["$defs"][part.name] = either(part.table);
    }
    root
}

const NAME_PATTERN: &str = "^[A-Za-z0-9._-]{1,64}$";

/// A table whose selector decides which other keys it has: one schema per value.
fn variants(spec: &Table) -> Value {
    let each: Vec<Value> = spec
        .variants()
        .iter()
        .map(|choice| table(spec, Some((choice.value, choice.doc))))
        .collect();
    json!({ "description": spec.doc, "type": "object", "oneOf": each })
}

fn table(spec: &Table, variant: Option<(&str, &str)>) -> Value {
    let name = variant.map(|(name, _)| name);
    let mut schema = json!({
        "type": "object",
        "description": variant.map_or(spec.doc, |(_, doc)| doc),
        "properties": properties(spec, name),
        "additionalProperties": false,
    });
    let required: Vec<&str> = spec
        .keys(name)
        .filter(|key| matches!(key.default, Default::Required) && key.needs.is_none())
        .map(|key| key.name)
        .collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let exclusive: Vec<Value> = spec
        .keys(name)
        .flat_map(|key| key.excludes.iter().map(move |other| [key.name, other]))
        .map(|pair| {
            let both: Vec<Value> = pair.into_iter().map(has_key).collect();
            json!({ "not": { "allOf": both } })
        })
        .collect();
    if !exclusive.is_empty() {
        schema["allOf"] = json!(exclusive);
    }
    for group in spec.groups_of(name).filter(|group| group.rule == Rule::ExactlyOne) {
        schema["oneOf"] = exactly_one(group);
    }
    schema
}

/// Properties of `[radio]` and of the tables of UEs and neighbours; those that are tables or lists
/// refer to their schemas.
fn parts(spec: &Table) -> Value {
    described(spec, &|key| match key.kind {
        Kind::List => {
            let items = json!({ "$ref": format!("#/$defs/{}", key.name) });
            json!({ "type": "array", "minItems": 1, "items": items })
        }
        Kind::Table => {
            let is = |part: &&Part| part.name == key.name || part.up == Some(key.name);
            let name = PARTS.iter().find(is).map_or(key.name, |part| part.name);
            json!({ "$ref": format!("#/$defs/{name}") })
        }
        _ => value(key),
    })
}

/// A table of the radio. Which of its keys apply depends on the cell's `access`, which is in
/// another table, so all are allowed. A key of several technologies has one range; its default is
/// left out where they differ.
fn either(spec: &Table) -> Value {
    let mut schema = table(spec, None);
    for key in spec.keys(None) {
        let defaults = |key: &Key| value(key).get("default").cloned();
        let differ = |other: &&Key| other.name == key.name && defaults(other) != defaults(key);
        if spec.keys(None).any(|other| differ(&other))
            && let Some(property) = schema["properties"][key.name].as_object_mut()
        {
            property.remove("default");
        }
    }
    if let Some(object) = schema.as_object_mut() {
        // Required keys that a file does not give come from the preset.
        object.remove("required");
    }
    schema
}

/// A schema that matches tables with this key.
fn has_key(name: &str) -> Value {
    match name.split_once('.') {
        None => json!({ "required": [name] }),
        Some((table, leaf)) => json!({
            "required": [table],
            "properties": { table: { "required": [leaf] } },
        }),
    }
}

fn exactly_one(group: &Group) -> Value {
    group.keys.iter().map(|key| json!({ "required": [key.name] })).collect()
}

fn properties(spec: &Table, variant: Option<&str>) -> Value {
    let mut properties = Map::new();
    for key in spec.keys(variant) {
        if properties.contains_key(key.name) {
            continue;
        }
        let mut schema = value(key);
        if let Some(variant) = variant
            && spec.selector == Some(key.name)
        {
            schema["const"] = json!(variant);
        }
        insert(&mut properties, key, schema);
    }
    Value::Object(properties)
}

/// Puts a key's schema among the properties, or among those of the table that it stands in.
fn insert(properties: &mut Map<String, Value>, key: &Key, schema: Value) {
    let Some((name, leaf)) = key.name.split_once('.') else {
        properties.insert(key.name.to_owned(), schema);
        return;
    };
    let doc = SUBTABLES.iter().find(|table| table.name == name).map_or("", |table| table.doc);
    let subtable = properties.entry(name).or_insert_with(|| {
        json!({
            "type": "object",
            "description": doc,
            "properties": {},
            "additionalProperties": false,
        })
    });
    subtable["properties"][leaf] = schema;
}

/// Properties that are tables or lists, made by `schema`, with the descriptions of their keys.
fn described(spec: &Table, schema: &dyn Fn(&Key) -> Value) -> Value {
    let mut properties = Map::new();
    for key in spec.keys(None) {
        let mut property = schema(key);
        property["description"] = json!(key.doc);
        properties.insert(key.name.to_owned(), property);
    }
    Value::Object(properties)
}

fn value(key: &Key) -> Value {
    let mut schema = of_kind(key.kind);
    schema["description"] = json!(match key.needs {
        Some(Need::Is(other, value)) => format!("{} Only with {other} = \"{value}\".", key.doc),
        Some(Need::Begins(other, start)) => {
            format!("{} Only with {other} = \"{start}…\".", key.doc)
        }
        Some(Need::Given(other)) => format!("{} Only with {other}.", key.doc),
        Some(Need::Not(other, value)) => format!("{} Not with {other} = \"{value}\".", key.doc),
        Some(Need::On(other)) => format!("{} Needs {other} = true.", key.doc),
        None => key.doc.to_owned(),
    });
    if let Default::Value(default) = key.default {
        // Strings, booleans and numbers are written the same in TOML and in JSON.
        if let Ok(default) = serde_json::from_str::<Value>(default) {
            schema["default"] = default;
        }
    }
    schema
}

fn of_kind(kind: Kind) -> Value {
    match kind {
        Kind::OrWord { word, kind } => {
            json!({ "oneOf": [{ "type": "string", "const": word }, of_kind(*kind)] })
        }
        Kind::Real { min, max, .. } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Text | Kind::File | Kind::Profile | Kind::Preset => json!({ "type": "string" }),
        Kind::Name => json!({ "type": "string", "pattern": NAME_PATTERN }),
        Kind::Choice(choices) => {
            let values: Vec<&str> = choices.iter().map(|choice| choice.value).collect();
            json!({ "type": "string", "enum": values })
        }
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Count { min, max, .. } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        Kind::Time { unit, min_ns, max_ns } => {
            let in_unit = |ns: u64| match unit {
                TimeUnit::Ms => ns as f64 / 1e6,
                TimeUnit::S => ns as f64 / 1e9,
            };
            let low = if min_ns == 1 { "exclusiveMinimum" } else { "minimum" };
            let min = if min_ns == 1 { 0.0 } else { in_unit(min_ns) };
            json!({ "type": "number", low: min, "maximum": in_unit(max_ns) })
        }
        Kind::Rate => {
            json!({ "type": "number", "exclusiveMinimum": 0, "maximum": FASTEST_BPS / 1_000_000 })
        }
        Kind::Fraction => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Kind::Table => json!({ "type": "object" }),
        Kind::List => json!({ "type": "array" }),
    }
}
