//! Function list of the README, compared with the code.

use std::collections::BTreeSet;

#[test]
fn readme_lists_available_functions() {
    let page = include_str!("../README.md");
    let section = page.split("\n### Functions\n").nth(1).and_then(|rest| rest.split("\n#").next()).expect("a section");
    let rows = section.lines().filter(|line| line.starts_with("| ")).filter_map(|row| row.split('|').nth(2));
    let listed: BTreeSet<_> = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert_eq!(listed, gotemplate_json::functions().collect());
}
