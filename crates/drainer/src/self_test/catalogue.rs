//! Every check and every finding that a report may have: `docs/doctor.md` names each by its id, and says what it asks or means.

/// The page, whose two tables are the only ones: a finding that it does not name fails in every build but the released one.
const PAGE: &str = include_str!("../../../../docs/doctor.md");
const CHECKS: &str = "| check | what it asks |\n| --- | --- |\n";
const FINDINGS: &str = "| finding | what it means |\n| --- | --- |\n";

/// Whether a report may have that check.
pub(super) fn has_check(id: &str) -> bool {
    ids(CHECKS).any(|known| known == id)
}

/// Whether a report may have that finding.
pub(super) fn has_finding(id: &str) -> bool {
    ids(FINDINGS).any(|known| known == id)
}

/// The ids in the table with that head.
fn ids(head: &str) -> impl Iterator<Item = &'static str> {
    let (_, rows) = PAGE.split_once(head).unwrap_or_default();
    rows.lines().map_while(|row| row.strip_prefix("| `")?.split('`').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_both_tables_and_no_id_twice() {
        for (head, least) in [(CHECKS, 15), (FINDINGS, 44)] {
            let distinct: std::collections::BTreeSet<_> = ids(head).collect();
            assert_eq!(distinct.len(), ids(head).count(), "{head}");
            assert!(distinct.len() >= least, "{head} has {} rows", distinct.len());
        }
        assert!(has_check("sign-in") && !has_check("missing-right"));
        assert!(has_finding("missing-right") && !has_finding("sign-in"));
    }

    #[test]
    fn every_id_stands_somewhere_in_the_doctor() {
        fn sources(folder: &std::path::Path) -> String {
            let entries = std::fs::read_dir(folder).expect("the sources").map(|entry| entry.expect("an entry").path());
            let text = |path: std::path::PathBuf| match path.is_dir() {
                true => sources(&path),
                false if path.ends_with("catalogue.rs") => String::new(),
                false => std::fs::read_to_string(path).expect("it is text"),
            };
            entries.map(text).collect()
        }
        let sources = sources(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/self_test")));
        for id in ids(CHECKS).chain(ids(FINDINGS)) {
            assert!(sources.contains(&format!("\"{id}\"")), "nothing makes {id}");
        }
    }
}
