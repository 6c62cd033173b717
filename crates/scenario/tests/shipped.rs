//! Tests that everything shipped parses, survives resolution, and is described by the schema and
//! the reference.

use std::path::{Path, PathBuf};

use airpath_path::{ServiceConfig, StageConfig};
use airpath_scenario::{Parsed, Source, json_schema, parse, reference_markdown, shipped};
use serde_json::Value;

fn parsed(name: &str, text: &str) -> Parsed {
    let file = format!("{name}.toml");
    match parse(&Source { name: &file, text, directory: None }, &[]) {
        Ok(parsed) => parsed,
        Err(error) => panic!("{error}"),
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_file_of_the_directory_is_shipped() {
    let mut files: Vec<String> = std::fs::read_dir(repository().join("scenarios"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|file| file.strip_suffix(".toml").map(str::to_owned))
        .collect();
    files.sort();
    let mut names: Vec<_> = shipped().iter().map(|(name, _)| (*name).to_owned()).collect();
    names.sort();
    assert_eq!(files, names);
}

#[test]
fn every_shipped_scenario_opens_with_a_comment_and_has_a_title() {
    for (name, text) in shipped() {
        assert!(text.starts_with("# "), "{name}");
        let scenario = parsed(name, text).scenario;
        assert_eq!(scenario.name, *name);
        assert_ne!(scenario.title, *name);
    }
}

#[test]
fn a_resolved_scenario_is_the_same_scenario() {
    for (name, text) in shipped() {
        let first = parsed(name, text);
        // The file contains the name by now.
        let again = parsed("other", &first.resolved_toml);
        assert_eq!(again.scenario, first.scenario.without_secrets(), "{name}");
        assert_eq!(again.resolved_toml, first.resolved_toml, "{name}");
        assert_eq!(again.sha256, first.sha256, "{name}");
    }
}

#[test]
fn no_two_shipped_scenarios_share_a_digest() {
    let mut digests: Vec<_> =
        shipped().iter().map(|(name, text)| parsed(name, text).sha256).collect();
    assert!(digests.iter().all(|digest| digest.len() == 64));
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), shipped().len());
}

#[test]
fn the_built_in_sawtooth_is_what_its_description_says() {
    let (name, text) = shipped().iter().find(|(name, _)| *name == "trace-driven").unwrap();
    let parsed = parsed(name, text);
    let StageConfig::Link(link) = &parsed.scenario.down[0].stage else { panic!("not a link") };
    let ServiceConfig::Trace(trace) = &link.service else { panic!("not a trace") };
    // 0.6 Mb/s plus 1.5 Mb/s per second: 600 t + 0.75 t^2 bits after t ms, 12,000 per timestamp.
    let mut stamps = Vec::new();
    for ms in 1..=2000_u64 {
        while (stamps.len() as u64 + 1) * 12_000 <= 600 * ms + 3 * ms * ms / 4 {
            stamps.push(airpath_base::Duration::from_millis(ms));
        }
    }
    assert_eq!(trace.stamps(), stamps);
    assert_eq!(parsed.traces[0].file, "builtin:sawtooth");
}

#[test]
fn the_committed_reference_is_the_generated_one() {
    let path = repository().join("docs/reference/scenario.md");
    let generated = reference_markdown();
    if std::env::var_os("AIRPATH_BLESS").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "{} is out of date; run AIRPATH_BLESS=1 cargo test -p airpath-scenario reference",
        path.display()
    );
}

#[test]
fn the_schema_accepts_every_shipped_and_every_resolved_scenario() {
    let schema = json_schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for (name, text) in shipped() {
        let resolved = parsed(name, text).resolved_toml;
        for text in [*text, resolved.as_str()] {
            let value: Value = toml::from_str(text).unwrap();
            if let Err(why) = check(&schema, &schema, &value) {
                panic!("{name}: {why}\n{text}");
            }
        }
    }
}

#[test]
fn the_schema_refuses_what_the_parser_refuses() {
    let schema = json_schema();
    let flow = "[[flow]]\nkind = \"bulk\"\n";
    for bad in [
        String::new(),
        format!("{flow}dealy_ms = 1\n"),
        format!("{flow}window_bytes = 1000000\nsend_buffer_bytes = 1000000\n"),
        format!("{flow}window_bytes = \"64 k\"\n"),
        format!("{flow}[run]\nduration_s = 0\n"),
        format!("{flow}[[path.up]]\nstage = \"loss\"\nprobability = 1.5\n"),
        format!("{flow}[[path.up]]\nstage = \"loss\"\n"),
        format!("{flow}[[path.up]]\nstage = \"loss\"\nprobability = 0.5\nperiod = 3\n"),
        format!("{flow}[[path.up]]\nstage = \"delay\"\ndelay_ms = 1\nqueue_packets = 1\n"),
        format!("{flow}[[path.up]]\nstage = \"link\"\n"),
    ] {
        let value: Value = toml::from_str(&bad).unwrap();
        assert!(check(&schema, &schema, &value).is_err(), "schema accepts\n{bad}");
        let source = Source { name: "bad.toml", text: &bad, directory: None };
        assert!(parse(&source, &[]).is_err(), "parser accepts\n{bad}");
    }
}

/// As much of JSON schema as ours uses; a keyword that it does not know is an error.
fn check(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let fail = |why: &str| Err(format!("{why}: {value} against {schema}"));
    for (keyword, rule) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" => {}
            "$ref" => {
                let pointer = rule.as_str().unwrap().strip_prefix('#').unwrap();
                check(root, root.pointer(pointer).expect("a $ref leads somewhere"), value)?;
            }
            "type" => {
                let holds = match rule.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "boolean" => value.is_boolean(),
                    "number" => value.is_number(),
                    "integer" => value.is_i64() || value.is_u64(),
                    other => panic!("type {other}"),
                };
                if !holds {
                    return fail("type");
                }
            }
            "properties" => {
                for (key, inner) in value.as_object().into_iter().flatten() {
                    match rule.get(key) {
                        Some(schema) => check(root, schema, inner)?,
                        // A schema without a type describes a part of a table.
                        None if schema.get("type").is_none() => {}
                        None => assert_eq!(schema["additionalProperties"], false),
                    }
                }
            }
            "additionalProperties" => {
                for (key, inner) in value.as_object().into_iter().flatten() {
                    let known = schema.get("properties").is_some_and(|all| all.get(key).is_some());
                    match rule {
                        Value::Bool(false) if !known => return fail(key),
                        Value::Object(_) if !known => check(root, rule, inner)?,
                        _ => {}
                    }
                }
            }
            "propertyNames" => assert!(rule["pattern"].is_string()),
            "required" => {
                for key in rule.as_array().unwrap() {
                    if value.get(key.as_str().unwrap()).is_none() {
                        return fail("required");
                    }
                }
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    check(root, rule, item)?;
                }
            }
            "minItems" => {
                if (value.as_array().unwrap().len() as u64) < rule.as_u64().unwrap() {
                    return fail("minItems");
                }
            }
            "oneOf" => {
                let all = rule.as_array().unwrap();
                if all.iter().filter(|each| check(root, each, value).is_ok()).count() != 1 {
                    return fail("oneOf");
                }
            }
            "allOf" => {
                for each in rule.as_array().unwrap() {
                    check(root, each, value)?;
                }
            }
            "not" => {
                if check(root, rule, value).is_ok() {
                    return fail("not");
                }
            }
            "enum" if !rule.as_array().unwrap().contains(value) => return fail("enum"),
            "enum" | "pattern" => {}
            "const" if rule != value => return fail("const"),
            "const" => {}
            "minimum" if value.as_f64() < rule.as_f64() => return fail("minimum"),
            "maximum" if value.as_f64() > rule.as_f64() => return fail("maximum"),
            "exclusiveMinimum" if value.as_f64() <= rule.as_f64() => return fail("minimum"),
            "minimum" | "maximum" | "exclusiveMinimum" => {}
            other => panic!("keyword {other}"),
        }
    }
    Ok(())
}
