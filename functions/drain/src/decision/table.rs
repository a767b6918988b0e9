//! The table of decisions as `docs/notices.md` shows it, and the test that compares them.

use super::{Act, by_table};
use crate::instance::Owner;
use crate::interruption::Kind;
use crate::settings::Settings;

/// A column: its head, an owner, and what the settings say of it.
type Column = (&'static str, Owner, &'static [(&'static str, &'static str)]);

const COLUMNS: [Column; 6] = [
    ("self-managed", Owner::SelfManaged, &[]),
    ("managed node group", Owner::ManagedNodeGroup, &[]),
    ("…, `drain`", Owner::ManagedNodeGroup, &[("SPILLWAY_MANAGED_NODE_GROUPS", "drain")]),
    ("Karpenter", Owner::Karpenter, &[]),
    ("…, `nodeclaim`", Owner::Karpenter, &[("SPILLWAY_KARPENTER", "nodeclaim")]),
    ("Auto Mode", Owner::AutoMode, &[]),
];

/// What the table shows beside the defaults: each optional act switched on.
const SHOWN_WITH: [(&str, &str); 3] =
    [("SPILLWAY_REBALANCE", "drain"), ("SPILLWAY_LAUNCH", "complete"), ("SPILLWAY_OUT_OF_SERVICE_TAINT", "true")];

fn settings(variables: &[(&str, &str)]) -> Settings {
    let variables = variables.iter().chain(&SHOWN_WITH);
    Settings::from_variables(variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
        .expect("they are accepted")
}

fn word(act: &Act) -> &'static str {
    match act {
        Act::Drain => "drain",
        Act::Cordon => "cordon",
        Act::AwaitReady => "complete when Ready",
        Act::Undo => "undo",
        Act::OutOfService => "out of service",
        Act::NodeClaim => "delete the NodeClaim",
        Act::Ignore(_) => "–",
    }
}

/// The table, and below it why each dash is one.
fn render() -> String {
    let mut rows = vec![row("notice", &COLUMNS.map(|(name, ..)| name.to_owned())), format!("|{}", " --- |".repeat(7))];
    let mut reasons = Vec::new();
    for kind in Kind::ALL {
        let cells = COLUMNS.map(|(_, owner, variables)| {
            let act = by_table(kind, owner, &settings(variables));
            let Act::Ignore(reason) = &act else { return word(&act).to_owned() };
            let reason = reason.to_string();
            let at = reasons.iter().position(|known| *known == reason).unwrap_or_else(|| {
                reasons.push(reason);
                reasons.len() - 1
            });
            format!("– ({})", at + 1)
        });
        rows.push(row(kind.as_str(), &cells));
    }
    let reasons = reasons.iter().enumerate().map(|(at, reason)| format!("{}. {reason}", at + 1));
    format!("{}\n\n{}\n", rows.join("\n"), reasons.collect::<Vec<_>>().join("\n"))
}

fn row(first: &str, cells: &[String; 6]) -> String {
    format!("| {first} | {} |", cells.join(" | "))
}

#[test]
fn the_table_in_the_documents_is_the_one_that_decides() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/notices.md");
    let page = std::fs::read_to_string(path).expect("docs/notices.md is there");
    let table = render();
    assert!(page.contains(&table), "docs/notices.md has another table than this:\n\n{table}");
}
