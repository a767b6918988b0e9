//! The page: what was wanted and found, every figure of every tool, and how they were taken.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum as _;
use jiff::Timestamp;

use super::case::{Case, Tool};
use super::figures::Figures;
use super::goals::{goals, in_mib};
use super::{FAR, NEAR, Results, Run, how_far, kubectl, nth};
use crate::measure::build;
use crate::measure::goal;
use crate::measure::machine::{self, Machine};
use crate::measure::statistics::{least, median, most};

pub(super) fn page(results: &Results, machine: &Machine, binary: &Path) -> String {
    let mut parts = vec![head(results, machine, binary), goal::table(&goals(results))];
    for case in Case::value_variants() {
        for distance in [NEAR, FAR] {
            parts.extend(table(results, *case, distance));
        }
    }
    parts.push(how());
    parts.join("\n")
}

fn head(results: &Results, machine: &Machine, binary: &Path) -> String {
    let settings = |tool: Tool| {
        let each = tool.settings().iter().map(|(name, value)| format!("`{name}={value}`"));
        each.collect::<Vec<_>>().join(", ")
    };
    let mut text = format!(
        "# Beside the others\n\
        \n\
        Spillway, `kubectl drain` and aws-node-termination-handler (NTH) empty the same kinds of nodes of one cluster, in\n\
        turn. Written by `make peers`, which measures it all anew; nothing here is typed by hand.\n\
        \n\
        * {date}; a number stands for the median, in brackets the least and the most\n\
        * {machine}; {quiet}\n\
        * Spillway: {build}\n\
        * `kubectl drain`: {kubectl}, one process with all nodes as its arguments and `{flags}`\n\
        * NTH: {nth} in queue mode, as its chart installs it; {workers}: with {of_workers}; {tuned}: a build that was\n  \
        named, with {of_tuned}\n",
        date = Timestamp::now().strftime("%Y-%m-%d"),
        machine = machine.in_words(),
        quiet = machine::quiet_in_words(&results.busy),
        build = build::in_words(binary),
        kubectl = results.kubectl,
        flags = kubectl::FLAGS.join(" "),
        nth = nth::release(),
        workers = Tool::NthWorkers.in_words(),
        of_workers = settings(Tool::NthWorkers),
        tuned = Tool::NthTuned.in_words(),
        of_tuned = settings(Tool::NthTuned),
    );
    for unmeasured in &results.unmeasured {
        let _ = writeln!(text, "* **not measured**: {unmeasured}");
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
    let columns = Tool::value_variants().iter().map(|tool| Column { tool: *tool, runs: runs_of(*tool) });
    let columns: Vec<Column> = columns.filter(|column| !column.runs.is_empty()).collect();
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
        ("end, s", |of| seconds(Some(of.end))),
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
    `make peers`, with what `make` itself needs. The cluster is a real control plane, kwok plays the kubelets, and the\n\
    pods exit at once; behind a budget they belong to a deployment, and a replacement is Ready a second after it is\n\
    bound. Every drain finds new nodes and new pods, and no others. A TCP proxy on the way to the API server adds the\n\
    round trip, for all tools. Requests and times come from the API server's audit log. The times are from the notice:\n\
    for Spillway the event handed to Lambda, for NTH the message in its queue, for `kubectl drain` the start of the\n\
    process. A drain ends with the function's last answer, with NTH's last message deleted, with the end of the process.\n\
    \n\
    Spillway has one process for each node, started for this drain, as Lambda would; what Lambda adds before it executes\n\
    the binary is not in it. NTH is started before the notice and waits for its queue; the notice comes at a random\n\
    point of its clocks. It runs as in a pod, with the rights of its chart, and takes its queue and its instances from\n\
    moto, as Spillway its instances.\n\
    \n\
    *Requests that name a pod* are evictions, and looks whether the pod has gone. Processor time is of all processes\n\
    together, memory (`VmHWM`) of the largest. A goal about time is judged by its ratios, each of two drains that\n\
    followed one another: when the limit lies in the interval of their median, it is undecided.\n"
        .to_owned()
}
