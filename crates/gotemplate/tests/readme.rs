//! Function list of the README, compared with the code.

use std::collections::BTreeSet;
use std::path::Path;

fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect(file)
}

/// Returns the words in backquotes in the second column of the table below a heading.
fn listed(page: &str, heading: &str) -> BTreeSet<String> {
    let section = page.split(heading).nth(1).and_then(|rest| rest.split("\n#").next()).expect(heading);
    let rows = section.lines().filter(|line| line.starts_with("| ")).filter_map(|row| row.split('|').nth(2));
    rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn readme_lists_available_functions() {
    let functions: BTreeSet<String> = gotemplate_json::functions().map(str::to_owned).collect();
    assert_eq!(listed(&read("README.md"), "\n### Functions\n"), functions);
}
