//! The page: what was wanted and found, every figure of every tool, and how they were taken.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum as _;
use jiff::Timestamp;

use super::case::{Case, Tool};
use super::figures::Figures;
use super::goals::{Verdict, goals, in_mib};
use super::{FAR, NEAR, Results, Run, how_far};
use crate::measure::build;
use crate::measure::machine::{self, Machine};
use crate::measure::statistics::{least, median, most};

pub(super) fn page(results: &Results, machine: &Machine, binary: &Path) -> String {
    let mut parts = vec![head(results, machine, binary), goals_table(results)];
    for case in Case::value_variants() {
        for distance in [NEAR, FAR] {
            parts.extend(table(results, *case, distance));
        }
    }
    parts.push(how());
    parts.join("\n")
}

fn head(results: &Results, machine: &Machine, binary: &Path) -> String {
    let mut text = format!(
        "# Beside the others\n\
        \n\
        Spillway and `kubectl drain` empty the same nodes of one cluster, in turn. Written by `make peers`,\n\
        which measures it all anew; nothing here is typed by hand.\n\
        \n\
        * {date}; a number stands for the median, in brackets the least and the most\n\
        * {machine}; {quiet}\n\
        * Spillway: {build}\n",
        date = Timestamp::now().strftime("%Y-%m-%d"),
        machine = machine.in_words(),
        quiet = machine::quiet_in_words(&results.busy),
        build = build::in_words(binary),
    );
    for unmeasured in &results.unmeasured {
        let _ = writeln!(text, "* **not measured**: {unmeasured}");
    }
    text
}

fn goals_table(results: &Results) -> String {
    let mut text = "## What was wanted\n\n| | wanted | found | |\n| --- | --- | --- | --- |\n".to_owned();
    for goal in goals(results) {
        let verdict = match goal.verdict {
            Verdict::Met => "met",
            Verdict::NotMet => "**not met**",
            Verdict::Undecided => "undecided",
        };
        let _ = writeln!(text, "| {} | {} | {} | {verdict} |", goal.what, goal.wanted, goal.found);
    }
    text
}

/// A tool, and what each of its runs came to.
struct Column<'a> {
    tool: Tool,
    runs: Vec<&'a Figures>,
}

/// One column for each tool that drained this case from this far.
fn table(results: &Results, case: Case, distance: Duration) -> Option<String> {
    let runs_of = |tool| {
        let is_it = |run: &&Run| run.case == case && run.distance == distance && run.tool == tool;
        results.runs.iter().filter(is_it).map(|run| &run.figures).collect()
    };
    let columns: Vec<Column> = Tool::ALL.map(|tool| Column { tool, runs: runs_of(tool) }).into();
    let columns: Vec<Column> = columns.into_iter().filter(|column| !column.runs.is_empty()).collect();
    if columns.is_empty() {
        return None;
    }
    let row = |what: &str, cell: &dyn Fn(&Column) -> String| {
        format!("| {what} | {} |\n", columns.iter().map(cell).collect::<Vec<_>>().join(" | "))
    };
    let mut text = format!("## {}, {}\n\n", case.in_words(), how_far(distance));
    text += &row("", &|column| column.tool.in_words().to_owned());
    text += &row("---", &|_| "---".to_owned());
    text += &row("runs", &|column| column.runs.len().to_string());
    for (what, value) in rows(case) {
        text += &row(what, &|column| in_cell(column.runs.iter().map(|figures| value(figures))));
    }
    Some(text)
}

/// A value of a row: none where there is none, with its digits.
type Value = fn(&Figures) -> Option<(f64, usize)>;

fn rows(case: Case) -> Vec<(&'static str, Value)> {
    let mut rows: Vec<(&'static str, Value)> = vec![("first cordon, s", |of| seconds(of.first_cordon))];
    if case.nodes() > 1 {
        rows.push(("last cordon, s", |of| seconds(of.last_cordon)));
    }
    rows.extend([
        ("last eviction, s", (|of| seconds(of.last_eviction)) as Value),
        ("end, s", |of| seconds(of.end)),
        ("requests before the first cordon", |of| count(of.before_cordon)),
        ("requests that name a pod", |of| count(of.for_pods)),
        ("requests in all", |of| count(of.for_pods + of.beside)),
        ("processor time, s", |of| seconds(Some(of.processor_time))),
        ("peak memory of a process, MiB", |of| Some((in_mib(of.peak_memory), 1))),
    ]);
    if case == Case::FiftyNodes {
        rows.push(("nodes cordoned within 120 s", |of| count(of.cordoned_in_window)));
        rows.push(("pods evicted within 120 s", |of| count(of.evicted_in_window)));
    }
    rows
}

fn seconds(time: Option<Duration>) -> Option<(f64, usize)> {
    time.map(|time| (time.as_secs_f64(), 2))
}

#[expect(clippy::cast_precision_loss, reason = "a drain has fewer requests than would lose one")]
#[expect(clippy::unnecessary_wraps, reason = "rows may lack a value; this one never does")]
fn count(count: usize) -> Option<(f64, usize)> {
    Some((count as f64, 0))
}

fn in_cell(values: impl Iterator<Item = Option<(f64, usize)>>) -> String {
    let Some(values) = values.collect::<Option<Vec<_>>>() else {
        return "never".to_owned();
    };
    let digits = values[0].1;
    let values: Vec<f64> = values.into_iter().map(|(value, _)| value).collect();
    let [middle, low, high] = [median(&values), least(&values), most(&values)].map(|value| format!("{value:.digits$}"));
    if low == high { middle } else { format!("{middle} ({low} to {high})") }
}

fn how() -> String {
    "## How it is measured\n\
    \n\
    The cluster is a real control plane, kwok plays the kubelets, and the pods exit at once. Every drain finds new nodes\n\
    and new pods, and no others. A TCP proxy on the way to the API server adds the round trip, for all tools. Times and\n\
    requests come from the API server's audit log, and the times are from the notice: for Spillway the event handed to\n\
    the function, for `kubectl drain` the start of the process. Spillway has one process for each node, started for this\n\
    drain, as Lambda would; what Lambda adds before it executes the binary is not in it. `kubectl drain` is one process\n\
    with all nodes as its arguments and `--ignore-daemonsets --delete-emptydir-data --force`.\n\
    \n\
    *Requests that name a pod* are evictions, and looks whether the pod has gone. Processor time and memory (`VmHWM`)\n\
    come from the kernel, of all processes and of the largest.\n"
        .to_owned()
}
