//! The page: each storm, a column for each tool, and what others have published of theirs.

use std::fmt::Write as _;
use std::time::Duration;

use super::super::case::Tool;
use super::super::figures::SPOT_WINDOW;
use super::results::{Failed, Limits, Run, Size, StormResults};
use crate::measure::report::Report;

impl Report for StormResults {
    const FILE: &'static str = "storm";

    fn page(&self) -> String {
        let mut sizes: Vec<Size> = self.runs.iter().map(|run| run.size).collect();
        sizes.dedup();
        let mut text = head(self);
        for size in sizes {
            text += &table(self, size);
        }
        text + PUBLISHED + HOW
    }
}

const PUBLISHED: &str = "\n## What others have published\n\
    \n\
    Real nodes on EKS, where these are kwok's on the machine above; other versions, other pods.\n\
    \n\
    | who | storm | last cordon | last eviction |\n\
    | --- | --- | --- | --- |\n\
    | NVSentinel 0.4 (`tests/scale-tests/results/Concurrent_Drain_Results.md`) | 150 × 2 pods | | 2 min |\n\
    | the same | 150 × 15 | | 7.5 min |\n\
    | the same | 750 × 15 | 305 s | 39 min |\n\
    | NVSentinel, 2026-09 (issue 1705) | 500 × 1 | | 52 s |\n\
    | NTH (openshift/hypershift 8500) | 10 workers hold 80 to 100 interruptions at once, 20 hold 150 to 200 | | |\n";

const HOW: &str = "\n## How it is measured\n\
    \n\
    All notices are sent in the same moment, to nodes of pods that exit at once. The API server is 20 ms further away. As in an\n\
    account, EC2 limits `DescribeInstances` (*EC2 50+10*: 50 at once and 10 more a second; 100+20 where nothing is said), EKS allows ten `DescribeCluster` at once and ten a second, and Lambda so\n\
    many executions; its queue tries again what found none, after 1 s, growing to 5 min. What stands for AWS goes first on the\n\
    processors: AWS shares its own with nobody. The function is cold for every notice. A\n\
    self-test ran before, as after each deployment. Instances go on after their two minutes: what was evicted later is counted as\n\
    late. Cordons and evictions come from the API server's audit log, calls from the stand-in's journal. *The evictions alone* is\n\
    what this API server does when somebody only evicts. A dash as last cordon or last eviction means that not all were answered with\n\
    success: one came never, or its answer was lost (504). How many came in time is the line below it.\n";

fn head(results: &StormResults) -> String {
    let mut text = results.circumstances.head("A storm of notices", StormResults::FILE);
    let _ =
        writeln!(text, "* NTH (aws-node-termination-handler): {} in queue mode, as its chart installs it", results.nth);
    for Failed { size, tool, limits, why } in &results.failed {
        let _ = writeln!(text, "* **failed**: {size}, {}: {why}", in_words(*tool, *limits));
    }
    for unmeasured in &results.unmeasured {
        let _ = writeln!(text, "* **not measured**: {unmeasured}");
    }
    text
}

pub(super) fn in_words(tool: Tool, limits: Option<Limits>) -> String {
    match limits {
        Some(Limits { executions, ec2 }) => format!("{}, {executions} executions, EC2 {ec2}", tool.in_words()),
        None => tool.in_words().to_owned(),
    }
}

fn table(results: &StormResults, size: Size) -> String {
    let runs: Vec<&Run> = results.runs.iter().filter(|run| run.size == size).collect();
    let line = |what: &str, cell: &dyn Fn(&Run) -> String| {
        format!("| {what} | {} |\n", runs.iter().map(|run| cell(run)).collect::<Vec<_>>().join(" | "))
    };
    let mut text = format!("\n## {} nodes × {} pods\n\n", size.nodes, size.pods);
    text += &line("", &|run| in_words(run.tool, run.limits));
    text += &line("---", &|_| "---".to_owned());
    text += &line("last cordon, s", &|run| seconds(run.figures.last_cordon));
    text += &line("of it EC2's limit, s", &|run| seconds(run.limits.map(|limits| limits.ec2.takes(size.nodes))));
    text += &line("cordoned within 120 s", &|run| run.figures.cordoned_in_window.to_string());
    text += &line("last eviction, s", &|run| seconds(run.figures.last_eviction));
    text += &line("evictions a second", &|run| rate(run, size));
    text += &line("pods evicted within 120 s", &|run| run.figures.evicted_in_window.to_string());
    text += &line("notices that failed", &|run| run.failed.to_string());
    text += &line("requests for each pod", &|run| a(run.figures.for_pods, size.nodes * size.pods));
    text += &line("other requests for each node", &|run| a(run.figures.beside, size.nodes));
    text += &line("429 of the API server", &|run| run.throttled_by_api_server.to_string());
    text += &line("`DescribeInstances` for each node", &|run| a(run.ec2.made, size.nodes));
    text += &line("of them throttled", &|run| run.ec2.throttled.to_string());
    text += &line("`DescribeCluster`", &|run| run.eks.made.to_string());
    text += &line("of them throttled", &|run| run.eks.throttled.to_string());
    text
}

/// What came of a run, for who waits an hour for the page.
pub(super) fn in_a_line(run: &Run) -> String {
    let Run { figures, .. } = run;
    let last = seconds(figures.last_cordon);
    format!("the last cordon after {last} s, {} pods evicted within 120 s", figures.evicted_in_window)
}

fn seconds(time: Option<Duration>) -> String {
    time.map_or_else(|| "–".to_owned(), |time| format!("{:.1}", time.as_secs_f64()))
}

/// To the last eviction, or within the two minutes where that never came.
#[expect(clippy::cast_precision_loss, reason = "a storm has fewer pods than would lose one")]
fn rate(run: &Run, size: Size) -> String {
    let (evicted, within) = match run.figures.last_eviction {
        Some(last) => (size.nodes * size.pods, last),
        None => (run.figures.evicted_in_window, SPOT_WINDOW),
    };
    format!("{:.0}", evicted as f64 / within.as_secs_f64())
}

#[expect(clippy::cast_precision_loss, reason = "a storm has fewer requests than would lose one")]
fn a(count: usize, of: usize) -> String {
    format!("{:.2}", count as f64 / of.max(1) as f64)
}
