//! Tests that the schema file matches the types. `AIRPATH_BLESS=1` rewrites the file.

use std::fs;

#[test]
fn the_schema_that_is_checked_in_is_that_of_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/documents.schema.json");
    let schema = airpath_schema::text();
    if std::env::var_os("AIRPATH_BLESS").is_some() {
        fs::write(path, &schema).expect("the schema can be written");
    }
    let written = fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == schema,
        "{path} is out of date; run AIRPATH_BLESS=1 cargo test -p airpath-schema"
    );
}
