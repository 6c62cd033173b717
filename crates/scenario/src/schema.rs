//! The JSON schema (draft 2020-12) of a scenario file, for editors. It knows every key, type,
//! range and default; what keys need of each other it leaves to [`parse`](crate::parse).

use serde_json::{Map, Value, json};

use crate::spec::{
    Default, FASTEST_BPS, FLOW, Group, Key, Kind, Need, PATH, PROFILE, ROOT, RUN, Rule, STAGE,
    Table, TimeUnit,
};

/// The schema as a JSON document.
pub fn json_schema() -> Value {
    let stages = json!({ "type": "array", "items": { "$ref": "#/$defs/stage" } });
    let mut path = table(&PATH, None);
    path["properties"] = described(&PATH, &|_| stages.clone());
    let mut root = table(&ROOT, None);
    root["properties"] = described(&ROOT, &|key| match key.name {
        "run" => json!({ "$ref": "#/$defs/run" }),
        "path" => json!({ "$ref": "#/$defs/path" }),
        "flow" => {
            json!({ "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/flow" } })
        }
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
        "path": path,
        "stage": variants(&STAGE),
        "flow": variants(&FLOW),
        "profile": table(&PROFILE, None),
    });
    root
}

const NAME_PATTERN: &str = "^[A-Za-z0-9._-]{1,64}$";

/// A table whose selector decides what else it holds: one schema for each value.
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
        .flat_map(|key| key.excludes.iter().map(move |other| json!([key.name, other])))
        .map(|pair| json!({ "not": { "required": pair } }))
        .collect();
    if !exclusive.is_empty() {
        schema["allOf"] = json!(exclusive);
    }
    for group in spec.groups_of(name).filter(|group| group.rule == Rule::ExactlyOne) {
        schema["oneOf"] = exactly_one(group);
    }
    schema
}

fn exactly_one(group: &Group) -> Value {
    group.keys.iter().map(|key| json!({ "required": [key.name] })).collect()
}

fn properties(spec: &Table, variant: Option<&str>) -> Value {
    let mut properties = Map::new();
    for key in spec.keys(variant) {
        let mut schema = value(key);
        if let Some(variant) = variant
            && spec.selector == Some(key.name)
        {
            schema["const"] = json!(variant);
        }
        properties.insert(key.name.to_owned(), schema);
    }
    Value::Object(properties)
}

/// Properties that are tables or lists, made by `schema`, with the keys' own descriptions.
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
    let mut schema = match key.kind {
        Kind::Text | Kind::File | Kind::Profile => json!({ "type": "string" }),
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
        Kind::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Kind::Table => json!({ "type": "object" }),
        Kind::List => json!({ "type": "array" }),
    };
    schema["description"] = json!(match key.needs {
        Some(Need::Is(other, value)) => format!("{} Only with {other} = \"{value}\".", key.doc),
        Some(Need::Begins(other, start)) => {
            format!("{} Only with {other} = \"{start}…\".", key.doc)
        }
        Some(Need::Given(other)) => format!("{} Only with {other}.", key.doc),
        None => key.doc.to_owned(),
    });
    if let Default::Value(default) = key.default {
        // Strings, booleans and numbers are written alike in TOML and in JSON.
        if let Ok(default) = serde_json::from_str::<Value>(default) {
            schema["default"] = default;
        }
    }
    schema
}
