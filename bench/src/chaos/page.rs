//! The page: what went wrong, what came of the notices, and what must not be.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::moved::Figures;
use super::{ChaosResults, Counts};
use crate::measure::report::Report;

impl Report for ChaosResults {
    const FILE: &'static str = "chaos";

    fn page(&self) -> String {
        page(self)
    }
}

fn page(results: &ChaosResults) -> String {
    let ChaosResults { circumstances, seed, minutes, stories, notices, duplicates, late, .. } = results;
    let nodes: usize = stories.values().sum();
    let told: usize = notices.values().sum();
    let mut text = circumstances.head("Many notices while much goes wrong", ChaosResults::FILE);
    let _ = write!(
        text,
        "* seed {seed}: {told} notices to {nodes} nodes that come within {minutes} min; **{violations}**\n\
        \n\
        Nodes with one to three pods come and go on the real control plane. AWS does with each instance what a story says,\n\
        gives its notices, delivers some of them twice ({duplicates}) and some late ({late} by up to three seconds, so that\n\
        they overtake each other). Meanwhile requests go wrong, executions are killed, networks fail, the API server and etcd\n\
        are killed and start again. What happens and when is drawn from the seed; how it interleaves is not. Windows are\n\
        short (30 s for a spot notice and for a rebalance recommendation, 60 s for a hook), an invocation has 40 s, and\n\
        Lambda's two further tries come after 3 s and 6 s, not after a minute and two.\n\
        \n\
        When all is quiet it is looked ([how](../development.md#chaos)) whether\n\
        \n\
        1. every delivery has a receipt in the function's log by its notice's id;\n\
        2. every lifecycle hook was answered;\n\
        3. nothing has panicked;\n\
        4. no node whose instance goes on has a cordon or a claim of ours;\n\
        5. every pod was requested to leave whose node was to be drained, and some were evicted at all;\n\
        6. receipts tell of each eviction and deletion that the API server's audit log has, and of no other;\n\
        7. no pod was deleted before it may be [forced](../what-happens.md#forced-in-time). Within budgets the API server\n\
        keeps evictions by itself;\n\
        8. no pod was given less grace than its own, or than what was left.\n\
        \n\
        An excuse is of that delivery, or of that request of a pod at that time, and is counted below.\n\
        \n\
        ## What must not be\n\
        \n",
        violations = match results.violations.len() {
            0 => "no violation".to_owned(),
            1 => "1 violation".to_owned(),
            count => format!("{count} violations"),
        }
    );
    if results.violations.is_empty() {
        text.push_str("Nothing of that was seen.\n");
    }
    for violation in &results.violations {
        let _ = writeln!(text, "* {violation}");
    }
    text.push_str(&moved(results.figures));
    text.push_str(&endings(results));
    for (title, of, counts) in tables(results) {
        let _ = write!(text, "\n## {title}\n\n| {of} | |\n| --- | --- |\n");
        for (name, count) in counts {
            let _ = writeln!(text, "| {name} | {count} |");
        }
    }
    text
}

/// What the API server wrote down of pods.
fn moved(figures: Figures) -> String {
    let Figures { pods, with_budget, evictions, refused, forced, compared } = figures;
    format!(
        "\n## What moved\n\n| by the API server's audit log | |\n| --- | --- |\n| pods that were to leave | {pods} |\n\
         | of these with a budget | {with_budget} |\n| evictions (201) | {evictions} |\n| refused by budgets (429) | {refused} |\n\
         | forced: deletions of pods that were not evicted | {forced} |\n| pods in receipts, compared with it | {compared} |\n"
    )
}

/// How deliveries ended: a row for each kind, a column for each ending.
fn endings(results: &ChaosResults) -> String {
    let ChaosResults { endings, receipts, in_use, struck, .. } = results;
    let columns: BTreeSet<&String> = endings.values().flat_map(Counts::keys).collect();
    let mut text = format!(
        "\n## How deliveries ended\n\n{receipts} receipts, by the last of which a delivery ended so; {struck} requests were struck by a fault; \
         {in_use} nodes\nwere to be in use in the end.\n\n| |"
    );
    for column in &columns {
        let _ = write!(text, " {column} |");
    }
    let _ = writeln!(text, "\n|{}", " --- |".repeat(columns.len() + 1));
    for (kind, counts) in endings {
        let _ = write!(text, "| {kind} |");
        for column in &columns {
            let _ = write!(text, " {} |", counts.get(*column).map_or_else(|| "–".to_owned(), usize::to_string));
        }
        text.push('\n');
    }
    text
}

/// Title, what is counted, and how often.
fn tables(results: &ChaosResults) -> Vec<(&'static str, &'static str, &Counts)> {
    let all = vec![
        ("What happened to instances", "story", &results.stories),
        ("The notices", "kind", &results.notices),
        ("What was excused", "why", &results.excuses),
        ("What the function had itself invoked with", "what", &results.continuations),
        ("What went wrong", "fault", &results.troubles),
        ("Attempts that failed", "error", &results.failed_attempts),
        ("In the failure queue", "notice", &results.given_up),
        ("Lifecycle actions", "ended by", &results.hooks),
    ];
    all.into_iter().filter(|(_, _, counts)| !counts.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::super::verdict::Violation;
    use super::*;
    use crate::test_support::circumstances;

    fn results(violations: Vec<Violation>) -> ChaosResults {
        let one = |name: &str| Counts::from([(name.to_owned(), 1)]);
        ChaosResults {
            circumstances: circumstances("make chaos NOTICES=1 MINUTES=1 SEED=7"),
            seed: 7,
            minutes: NonZeroU32::MIN,
            stories: one("ended"),
            notices: one("instance shutting down"),
            duplicates: 1,
            late: 0,
            continuations: Counts::new(),
            troubles: one("partition"),
            struck: 3,
            endings: [("instance shutting down".to_owned(), one("drained"))].into(),
            failed_attempts: Counts::new(),
            receipts: 2,
            given_up: Counts::new(),
            hooks: Counts::new(),
            in_use: 0,
            figures: Figures { pods: 3, evictions: 2, forced: 1, ..Figures::default() },
            excuses: Counts::new(),
            violations,
        }
    }

    #[test]
    fn a_page_without_violations_says_so_and_has_no_empty_table() {
        let page = page(&results(Vec::new()));
        assert!(page.contains("**no violation**") && page.contains("Nothing of that was seen."), "{page}");
        assert!(page.contains("| evictions (201) | 2 |\n"), "{page}");
        assert!(page.contains("| instance shutting down | 1 |\n\n## What went wrong"), "{page}");
        assert!(!page.contains("failure queue\n\n|"), "{page}");
    }

    #[test]
    fn a_violation_stands_on_the_page() {
        let page = page(&results(vec![Violation::NeverQuiet { instance: "i-1".to_owned() }]));
        assert!(page.contains("**1 violation**") && page.contains("* never quiet: i-1\n"), "{page}");
    }
}
