//! The page of causes agrees with what the engine says of them.
#![allow(clippy::disallowed_methods)]

use std::path::Path;

use airpath_findings::causes_markdown;

#[test]
fn the_page_of_causes_is_generated() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/causes.md");
    let wanted = causes_markdown();
    if std::env::var("AIRPATH_BLESS").is_ok_and(|set| set == "1") {
        std::fs::write(&page, &wanted).expect("docs can be written");
    }
    assert_eq!(std::fs::read_to_string(&page).expect("the page is there"), wanted);
}
