//! `docs/templates.md` lists the functions that there are.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn the_page_lists_the_functions_that_there_are() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/templates.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let table =
        page.split("## Functions").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("it has the table");
    let rows = table.lines().filter(|line| line.starts_with("| ")).filter_map(|row| row.split('|').nth(2));
    let listed: BTreeSet<&str> = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert_eq!(listed, gotemplate_json::functions().collect());
}
