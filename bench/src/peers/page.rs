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
        row("of all processes, MiB, at most", 0, |run| Some(run.peak_mib() * processes(run))),
    ]);
    if case.nodes() == 50 {
        rows.push(row("nodes cordoned within 120 s", 0, |run| count(run.figures.cordoned_in_window)));
        rows.push(row("pods evicted within 120 s", 0, |run| count(run.figures.evicted_in_window)));
    }
    rows
}

/// Spillway has one for each node, and so has the bare loop.
fn processes(run: &Run) -> f64 {
    let nodes = u32::try_from(run.case.nodes()).map_or(f64::INFINITY, f64::from);
    if matches!(run.tool, Tool::Spillway | Tool::Baseline) { nodes } else { 1.0 }
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
    cluster every tool first drains a small node that is not counted. Every drain finds new nodes and new pods, and a machine\n\
    at rest. A TCP proxy on the way to the API server adds the round trip, for all tools.\n\
    \n\
    * **Pods** exit at once, unless the case says that they take five seconds. A node's pods belong to one controller, which\n\
    \x20\x20puts none back. Behind a budget that is a deployment, which does; a replacement is Ready as soon as it is bound, or\n\
    \x20\x20after a second where the case says so.\n\
    * **Times** come from the API server's audit log and count from the notice: the event handed to Lambda, the message in\n\
    \x20\x20NTH's queue, the start of `kubectl drain`. A drain ends with the function's last answer, with NTH's last message\n\
    \x20\x20deleted, with the end of the process. Spillway watches five seconds for late pods, so it ends a small drain later than\n\
    \x20\x20the others.\n\
    * **Requests for each pod** are those that name one: evictions, and looks whether it has gone. Processor time is of all\n\
    \x20\x20processes together. Memory (`VmHWM`) is of the largest process, and below it that times the number of processes.\n\
    \n\
    What helps whom:\n\
    \n\
    * The API server runs with `GOGC=500` and collects its garbage before each drain; kwok, the controllers and the scheduler\n\
    \x20\x20run with `nice -n 10`. Both help a tool whose requests come in a burst, Spillway, more than one that limits itself. In\n\
    \x20\x20the case *where nothing helps a burst* neither is so.\n\
    * Spillway has one process for each node, as on Lambda, with the machine's whole processors. On Lambda each has 256/1769\n\
    \x20\x20of one: [bench.md](bench.md) has a drain with that share, whose evictions take as long. What Lambda adds before it\n\
    \x20\x20executes the binary is not in it: for a small Rust function [18 to 22 ms](https://fulgurion.com/blog/posts/rust-on-aws-lambda-cold-start/)\n\
    \x20\x20are published. From there to the first poll it takes some 7 ms. EventBridge brings the notice to all of them, and is in none.\n\
    * NTH is started before the notice and waits for its queue. It takes its queue and its instances from moto, as Spillway\n\
    \x20\x20its instances. With `WORKERS=50` it is the latest release with what its chart can be told; *tuned* is a later commit,\n\
    \x20\x20whose rate of requests can be set too.\n\
    * `deploy/optional/flow-control.yaml` is applied only in the case that says so.\n\
    \n\
    *The evictions alone* are a bare loop for each node that posts the evictions of its pods, all at once. It is no drain,\n\
    which has to do more. The requirements have a line with it in Spillway's place, but not behind a budget, and not for\n\
    fifty nodes, where the API server rejects a part of its requests.\n\
    \n\
    How often each tool drains each case is fixed before the first drain (`bench/src/peers/case.rs`). A requirement of time\n\
    is judged by the ratios of two drains that followed one another, and by the interval in which their median lies with\n\
    95 % confidence (the sign test's, for each line by itself). When the limit lies within it, the line is undecided, and so\n\
    it is with fewer than six rounds. A drain of Spillway's that fails, or leaves something, misses what is required.\n\
    \n\
    ## What others have published\n\
    \n\
    [NVSentinel](https://github.com/NVIDIA/NVSentinel/blob/main/tests/scale-tests/results/Concurrent_Drain_Results.md) 0.4.0\n\
    drained 150 nodes with 15 pods each in about 8 minutes, on a real cluster of 1,500 nodes (December 2025). The last cordon\n\
    came after 63 s, and five evictions a second were its client's limit. It was not measured here.\n\
    [hypershift#8500](https://github.com/openshift/hypershift/pull/8500) raised NTH's workers from 10 to 20, because 10 handle\n\
    80 to 100 interruptions at once.\n"
        .to_owned()
}
