//! The page: what is required and was measured, every figure of every tool, and how they were taken.

use std::fmt::Write as _;
use std::time::Duration;

use clap::ValueEnum as _;

use super::case::{Case, Tool};
use super::requirements::requirements;
use super::results::{Failed, PeersResults, Run};
use super::{FAR, NEAR, how_far, kubectl};
use crate::measure::report::Report;
use crate::measure::requirement;
use crate::measure::statistics::{least, median, most};

impl Report for PeersResults {
    const FILE: &'static str = "peers";

    fn page(&self) -> String {
        page(self)
    }
}

fn page(results: &PeersResults) -> String {
    let mut parts = vec![head(results), requirement::table(&requirements(results))];
    for case in Case::value_variants() {
        for distance in [NEAR, FAR] {
            parts.extend(table(results, *case, distance));
        }
    }
    parts.push(how());
    parts.join("\n")
}

fn head(results: &PeersResults) -> String {
    let settings = |tool: Tool| {
        let each = tool.settings().iter().map(|(name, value)| format!("`{name}={value}`"));
        each.collect::<Vec<_>>().join(", ")
    };
    let mut text = results.circumstances.head("Beside the others", PeersResults::FILE);
    let _ = writeln!(
        text,
        "* a number stands for the median, in brackets the least and the most; {rests}\n\
        * `kubectl drain`: {kubectl}, one process with all nodes as its arguments and `{flags}`\n\
        * NTH (aws-node-termination-handler): {nth} in queue mode, as its chart installs it; {workers}: with\n  \
        {of_workers}; {tuned}: a build that was named, with {of_tuned}",
        rests = results.rests.in_words(),
        kubectl = results.kubectl,
        flags = kubectl::FLAGS.join(" "),
        nth = results.nth,
        workers = Tool::NthWorkers.in_words(),
        of_workers = settings(Tool::NthWorkers),
        tuned = Tool::NthTuned.in_words(),
        of_tuned = settings(Tool::NthTuned),
    );
    for Failed { case, distance, round, tool, why } in &results.failed {
        let (case, far, tool) = (case.in_words(), how_far(*distance), tool.in_words());
        let _ = writeln!(text, "* **failed**: {case}, {far}, {tool}, round {}: {why}", round + 1);
    }
    for unmeasured in &results.unmeasured {
        let _ = writeln!(text, "* **not measured**: {unmeasured}");
    }
    text + "\nSpillway, `kubectl drain` and NTH empty the same kinds of nodes, in turn, in one cluster for each case.\n"
}

/// What a tool's runs came to.
struct Column<'a> {
    tool: Tool,
    runs: Vec<&'a Run>,
}

struct Row {
    what: &'static str,
    digits: usize,
    value: fn(&Run) -> Option<f64>,
}

/// One column for each tool that drained this case from this far.
fn table(results: &PeersResults, case: Case, distance: Duration) -> Option<String> {
    let of = |tool: &Tool| Column { tool: *tool, runs: results.of(case, distance, *tool).collect() };
    let columns: Vec<Column> = Tool::value_variants().iter().map(of).filter(|column| !column.runs.is_empty()).collect();
    if columns.is_empty() {
        return None;
    }
    let line = |what: &str, cell: &dyn Fn(&Column) -> String| {
        format!("| {what} | {} |\n", columns.iter().map(cell).collect::<Vec<_>>().join(" | "))
    };
    let mut text = format!("## {}, {}\n\n", case.in_words(), how_far(distance));
    text += &line("", &|column| column.tool.in_words().to_owned());
    text += &line("---", &|_| "---".to_owned());
    text += &line("runs", &|column| column.runs.len().to_string());
    for row in rows(case) {
        text += &line(row.what, &|column| in_cell(column, &row));
    }
    Some(text)
}

fn rows(case: Case) -> Vec<Row> {
    let row = |what, digits, value| Row { what, digits, value };
    let mut rows = vec![row("first cordon, s", 2, |run| seconds(run.figures.first_cordon))];
    if case.nodes() > 1 {
        rows.push(row("last cordon, s", 2, |run| seconds(run.figures.last_cordon)));
    }
    rows.extend([
        row("last eviction, s", 2, |run| seconds(run.figures.last_eviction)),
        row("end, s", 2, |run| seconds(Some(run.figures.end))),
        row("requests before the first cordon", 0, |run| {
            run.figures.first_cordon.and(count(run.figures.before_cordon))
        }),
        row("requests for each pod", 2, |run| Some(run.requests_a_pod())),
        row("requests for each node beside", 1, |run| Some(run.requests_a_node())),
        row("requests in all", 0, |run| count(run.figures.for_pods + run.figures.beside)),
        row("processor time, s", 2, |run| seconds(Some(run.figures.processor_time))),
        row("peak memory of a process, MiB", 1, |run| Some(run.peak_mib())),
    ]);
    if case.nodes() == 50 {
        rows.push(row("nodes cordoned within 120 s", 0, |run| count(run.figures.cordoned_in_window)));
        rows.push(row("pods evicted within 120 s", 0, |run| count(run.figures.evicted_in_window)));
    }
    rows
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

fn count(count: usize) -> Option<f64> {
    u32::try_from(count).ok().map(f64::from)
}

/// The median, and how far the runs spread; it never came to it when one of them did not.
fn in_cell(column: &Column, row: &Row) -> String {
    let Some(values) = column.runs.iter().map(|run| (row.value)(run)).collect::<Option<Vec<f64>>>() else {
        // The evictions alone cordon nothing, and were not to.
        return if column.tool == Tool::Baseline { "—" } else { "never" }.to_owned();
    };
    let digits = row.digits;
    let [middle, low, high] = [median(&values), least(&values), most(&values)].map(|value| format!("{value:.digits$}"));
    if low == high { middle } else { format!("{middle} ({low} to {high})") }
}

fn how() -> String {
    "## How it is measured\n\
    \n\
    The cluster is a real control plane, a new one for each number of nodes and pods, and kwok plays the kubelets. In each\n\
    cluster every tool first drains a small node that is not counted. Pods exit at once, as hardly any real one does, but\n\
    where it is said that they take five seconds: there NTH looks at each pod once a second, and with fifty nodes comes to\n\
    its own limit of requests, so that evictions wait for looks. A node's pods belong to one controller, which puts none\n\
    back. Behind a budget that is a deployment, which does, and a replacement is Ready as soon as it is bound, so that what\n\
    is seen is the tools' own waiting; where it takes a second, nineteen seconds are the replacements' and no tool's. Every\n\
    drain finds new nodes and new pods, no others, and a machine at rest. The API server runs with `GOGC=500` and is made\n\
    to collect its garbage before each drain, so that none pays for what filling the nodes left behind. kwok, the\n\
    controllers and the scheduler run with `nice -n 10`: what answers a drain goes before what hears of it. In a cluster\n\
    kubelets have processors of their own; the controllers and the scheduler may share the API server's. It can cost who\n\
    waits for replacements behind a budget a pause more. Both help a tool whose requests come in a burst, Spillway, more\n\
    than one that limits itself: in the case *where nothing helps a burst* neither is so. `deploy/optional/flow-control.yaml`\n\
    is not applied, as it is not by default, but in the case that says so. A TCP proxy on the way to the API server adds the round trip, for all tools. Requests and\n\
    times come from the API server's audit log. The times are from the notice: for Spillway the event handed to Lambda, for\n\
    NTH the message in its queue, for `kubectl drain` the start of the process. A drain ends with the function's last\n\
    answer, with NTH's last message deleted, with the end of the process.\n\
    \n\
    Spillway has one process for each node, started for this drain, as Lambda would, with the machine's whole processors:\n\
    with the template's 256 MB Lambda gives each 256/1769 of one. What Lambda adds before it executes the binary is not in\n\
    it. NTH is started before the notice and waits for its queue; the notice comes at a random point of its clocks. It runs\n\
    as in a pod, with the rights of its chart, and takes its queue and its instances from moto, as Spillway its instances.\n\
    Only while NTH drains is moto asked ten times a second what NTH has called.\n\
    \n\
    *The evictions alone*, the baseline, are a bare loop for each node that posts the evictions of its pods over one\n\
    connection, all at once: no cordon, no list, nothing that waits or tries again. It is no drain, which has to do as much\n\
    and more. The requirements have a line with this loop in Spillway's place. It is not there behind a budget, which it\n\
    would have to wait for, nor for fifty nodes: the API server turns a part of one user's thousand requests away.\n\
    \n\
    *Requests for each pod* are those that name one: evictions, and looks whether it has gone. Processor time is of all\n\
    processes together, memory (`VmHWM`) of the largest. How often each tool drains each case is fixed before the first\n\
    drain (`bench/src/peers/case.rs`). A requirement of time is judged by its ratios, each of two drains that followed one\n\
    another, and the interval in which their median lies with 95 % confidence (the sign test's, for each line by itself:\n\
    of twenty lines that are just met, one may be found missed by chance). When the limit lies between its ends, it is\n\
    undecided, and so it is with fewer than six rounds. A drain of Spillway's that fails, or leaves something, misses\n\
    what is required of its case.\n"
        .to_owned()
}
