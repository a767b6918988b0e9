//! Test: the table of decisions is the one in `docs/notices.md`.

use spillway_notice::Kind;
use spillway_settings::Settings;

use super::super::{Decision, by_table};
use crate::instance::ManagedBy;
use crate::test_support;

/// Column of the table: head, owner, settings.
type Column = (&'static str, ManagedBy, &'static [(&'static str, &'static str)]);

const COLUMNS: [Column; 6] = [
    ("self-managed", ManagedBy::SelfManaged, &[]),
    ("managed node group", ManagedBy::ManagedNodeGroup, &[]),
    ("…, `drain`", ManagedBy::ManagedNodeGroup, &[("SPILLWAY_MANAGED_NODE_GROUPS", "drain")]),
    ("Karpenter", ManagedBy::Karpenter, &[]),
    ("…, `nodeclaim`", ManagedBy::Karpenter, &[("SPILLWAY_KARPENTER", "nodeclaim")]),
    ("Auto Mode", ManagedBy::AutoMode, &[]),
];

/// Settings of all columns: each optional decision switched on.
const SHOWN_WITH: [(&str, &str); 3] = [
    ("SPILLWAY_DRAIN_ON", "spot,capacity,maintenance,state-change,terminate,rebalance"),
    ("SPILLWAY_LAUNCH", "ABANDON"),
    ("SPILLWAY_TAINTS", "out-of-service"),
];

fn settings(variables: &[(&str, &str)]) -> Settings {
    test_support::settings(&[variables, &SHOWN_WITH].concat())
}

fn word(decision: &Decision) -> &'static str {
    match decision {
        Decision::Drain => "drain",
        Decision::Cordon => "cordon",
        Decision::AwaitReady => "complete when Ready",
        Decision::Complete => "complete at once",
        Decision::Undo => "undo",
        Decision::OutOfService => "out of service",
        Decision::NodeClaim => "delete the NodeClaim",
        Decision::Postpone(_) => unreachable!("the table knows no time"),
        Decision::Ignore(_) => "–",
    }
}

/// The table: one row for all notices with equal decisions, and the reasons below.
fn render() -> String {
    let mut decided: Vec<(Vec<&str>, [String; 6])> = Vec::new();
    let mut reasons = Vec::new();
    for kind in Kind::ALL {
        let cells = COLUMNS.map(|(_, owner, variables)| {
            let decision = by_table(kind, owner, &settings(variables));
            let Decision::Ignore(reason) = &decision else { return word(&decision).to_owned() };
            let reason = reason.to_string();
            let at = reasons.iter().position(|known| *known == reason).unwrap_or_else(|| {
                reasons.push(reason);
                reasons.len() - 1
            });
            format!("– ({})", at + 1)
        });
        match decided.iter_mut().find(|(_, known)| *known == cells) {
            Some((kinds, _)) => kinds.push(kind.as_str()),
            None => decided.push((vec![kind.as_str()], cells)),
        }
    }
    let mut rows = vec![row("notice", &COLUMNS.map(|(name, ..)| name.to_owned())), format!("|{}", " --- |".repeat(7))];
    rows.extend(decided.iter().map(|(kinds, cells)| row(&kinds.join(", "), cells)));
    let reasons = reasons.iter().enumerate().map(|(at, reason)| format!("{}. {reason}", at + 1));
    format!("{}\n\n{}\n", rows.join("\n"), reasons.collect::<Vec<_>>().join("\n"))
}

fn row(first: &str, cells: &[String; 6]) -> String {
    format!("| {first} | {} |", cells.join(" | "))
}

#[test]
fn documented_table_matches_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/notices.md");
    let page = std::fs::read_to_string(path).expect("docs/notices.md is there");
    let table = render();
    assert!(page.contains(&table), "docs/notices.md has another table than this:\n\n{table}");
}
