//! The page docs/contributing/measured/bench.md, rendered from the raw results. Pure.

use std::fmt::Write as _;

use crate::case::{Case, Tool};
use crate::figures::Figures;
use crate::fixture::ROUND_TRIP;
use crate::nth;
use crate::replacement::Replacement;
use crate::requirements::{Row, against_before, mib, requirements};
use crate::results::{Beside, BesideRow, Results};
use crate::starts::Claims;
use crate::statistics::{least, median, most, to_f64};

pub(crate) fn page(results: &Results) -> String {
    let mut parts = vec![head(results), table("Requirements", &requirements(results))];
    if results.sizes.iter().any(|size| size.tool == Tool::Before) {
        parts.push(table("Against BEFORE", &against_before(results)));
    }
    parts.extend(results.whole_cases().map(|case| of_case(results, case)));
    parts.push(starts(results));
    parts.extend(results.replacement.map(Replacement::in_words));
    if !results.beside.is_empty() {
        parts.push(beside(&results.beside));
    }
    parts.push(how());
    parts.join("\n")
}

fn head(results: &Results) -> String {
    let circumstances = &results.circumstances;
    let mut text = format!(
        "# How fast, how small, and what it costs\n\
        \n\
        Written by `{command}` at {commit}; nothing here is typed by hand.\n\
        The raw results are beside it: [bench.json](bench.json).\n\
        \n\
        * {words}\n\
        * measured: {build}\n\
        * sources of the bench: `{sources}`\n\
        * {rests}\n",
        command = circumstances.command,
        commit = circumstances.commit,
        words = circumstances.in_words(),
        build = circumstances.build,
        sources = circumstances.sources,
        rests = results.rests.in_words(),
    );
    for failed in &results.failed {
        let (case, tool) = (failed.case.in_words(), failed.tool.in_words());
        let _ = writeln!(text, "* **failed**: {case}, {tool}, round {}: {}", failed.round + 1, failed.why);
    }
    text
}

fn table(title: &str, rows: &[Row]) -> String {
    let mut text = format!(
        "## {title}\n\n| | required | measured | 95 % confidence interval | result |\n| --- | --- | --- | --- | --- |\n"
    );
    for Row { what, required, measured, interval, verdict } in rows {
        let interval = if interval.is_empty() { "–" } else { interval };
        let _ = writeln!(text, "| {what} | {required} | {measured} | {interval} | {} |", verdict.in_words());
    }
    text
}

/// A line of the table of a case.
struct Line {
    what: &'static str,
    digits: usize,
    value: fn(&Figures, Case) -> Option<f64>,
}

fn lines(case: Case) -> Vec<Line> {
    let line = |what, digits, value| Line { what, digits, value };
    let mut lines = vec![line("first cordon, s", 2, |of, _| of.first_cordon_s)];
    if case.nodes > 1 {
        lines.push(line("last cordon, s", 1, |of, _| of.last_cordon_s));
        lines.push(line("nodes cordoned within 120 s", 0, |of, _| Some(to_f64(of.cordoned_in_window))));
    }
    lines.extend([
        line("last eviction, s", 2, |of, _| of.last_eviction_s),
        line("pods evicted within 120 s", 0, |of, _| Some(to_f64(of.evicted_in_window))),
        line("evictions a second", 0, |of, case| Some(to_f64(case.nodes * case.pods) / of.last_eviction_s?)),
        line("end, s", 2, |of, _| Some(of.end_s)),
        line("nodes not drained", 0, |of, _| Some(to_f64(of.failed))),
        line("requests for each pod", 2, |of, case| Some(to_f64(of.for_pods) / to_f64(case.nodes * case.pods))),
        line("other requests for each node", 1, |of, case| Some(to_f64(of.other_requests) / to_f64(case.nodes))),
        line("429 of the API server", 0, |of, _| Some(to_f64(of.refused))),
        line("bytes through the connections, MB", 2, |of, _| Some(mib(of.traffic.bytes) * 1.048_576)),
        line("`DescribeInstances` for each node", 2, |of, case| {
            Some(to_f64(of.calls_of("DescribeInstances")) / to_f64(case.nodes))
        }),
        line("`DescribeCluster`", 0, |of, _| Some(to_f64(of.calls_of("DescribeCluster")))),
        line("AWS calls throttled", 0, |of, _| Some(to_f64(of.throttled_calls))),
        line("processor time of all processes, s", 2, |of, _| Some(of.processor_s)),
        line("peak memory of a process, MiB", 1, |of, _| Some(mib(of.peak_memory))),
    ]);
    lines
}

/// Table of a case, with a column for each tool.
fn of_case(results: &Results, case: Case) -> String {
    let figures = |tool: Tool| results.of(case, tool).map(|run| &run.figures).collect::<Vec<_>>();
    let columns = Tool::ALL.map(|tool| (tool, figures(tool)));
    let columns: Vec<_> = columns.iter().filter(|(_, figures)| !figures.is_empty()).collect();
    let row = |what: &str, cells: Vec<String>| format!("| {what} | {} |\n", cells.join(" | "));
    let mut text = format!("## {}\n\n", case.in_words());
    text += &row("", columns.iter().map(|(tool, _)| tool.in_words().to_owned()).collect());
    text += &row("---", columns.iter().map(|_| "---".to_owned()).collect());
    text += &row("rounds", columns.iter().map(|(_, figures)| figures.len().to_string()).collect());
    for line in lines(case) {
        let cell = |figures: &[&Figures]| {
            let values = figures.iter().map(|of| (line.value)(of, case)).collect::<Option<Vec<f64>>>();
            values.map_or_else(|| "–".to_owned(), |values| spread(&values, line.digits))
        };
        text += &row(line.what, columns.iter().map(|(_, figures)| cell(figures)).collect());
    }
    text + &processors(results, case).unwrap_or_default()
}

/// By how much the machine's processors fall short in a storm: its last cordon less that of its tenth.
fn processors(results: &Results, case: Case) -> Option<String> {
    let middle = |case: Case, value: fn(&Figures) -> Option<f64>| {
        let values: Option<Vec<f64>> = results.of(case, Tool::Spillway).map(|run| value(&run.figures)).collect();
        values.filter(|values| !values.is_empty()).map(|values| median(&values))
    };
    let tenth = case.tenth()?;
    let last_cordon = |case| middle(case, |figures| figures.last_cordon_s);
    let (whole_s, tenth_s) = (last_cordon(case)?, last_cordon(tenth)?);
    let calls = middle(tenth, |figures| Some(to_f64(figures.calls_of("DescribeInstances"))))? / to_f64(tenth.nodes);
    Some(format!(
        "\nWith a tenth of the nodes and of AWS' quotas, the last cordon comes after {tenth_s:.1} s, with {calls:.1} EC2 calls a node. \
        The other {:.1} s are by how much this machine's processors fall short.\n",
        whole_s - tenth_s
    ))
}

fn starts(results: &Results) -> String {
    let mut text = "## Builds\n\n| | Spillway | BEFORE | an empty function |\n| --- | --- | --- | --- |\n".to_owned();
    let mut row = |what: &str, cells: [Option<String>; 3]| {
        let cells = cells.map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
        let _ = writeln!(text, "| {what} | {} |", cells.join(" | "));
    };
    let size = |tool: Tool| results.sizes.iter().find(|size| size.tool == tool);
    let mb = |bytes: u64| format!("{:.2}", mib(bytes) * 1.048_576);
    let both = [Tool::Spillway, Tool::Before];
    let [now, before] = both.map(|tool| size(tool).map(|size| mb(size.binary)));
    row("binary, MB", [now, before, None]);
    let [now, before] = both.map(|tool| size(tool).map(|size| mb(size.zipped)));
    row("package, zipped, MB", [now, before, None]);
    let all = |values: Vec<f64>| (!values.is_empty()).then(|| spread(&values, 1));
    let starts = &results.starts;
    row(
        "start: execution to first poll of the Runtime API, ms",
        [
            all(starts.iter().map(|start| start.spillway_ms).collect()),
            all(starts.iter().filter_map(|start| start.before_ms).collect()),
            all(starts.iter().map(|start| start.empty_ms).collect()),
        ],
    );
    let claims = |tool: Tool, value: fn(&Claims) -> f64| {
        all(results.claims.iter().filter(|claims| claims.tool == tool).map(value).collect())
    };
    let [now, before] = both.map(|tool| claims(tool, |claims| claims.cold_ms));
    row("notice to cordon of an empty node, cold, ms", [now, before, None]);
    let [now, before] = both.map(|tool| claims(tool, |claims| claims.warm_ms));
    row("the same, warm, ms", [now, before, None]);
    text
}

fn beside(all: &[Beside]) -> String {
    let mut text = "## Beside other tools\n\
        \n\
        The last measurements with other tools, in turn with Spillway in one cluster. A run of `make bench` without `NTH=` keeps\n\
        them as they are. Times and requests are medians; counts within 120 s and memory are of the worst round.\n"
        .to_owned();
    for Beside { circumstances, rows } in all {
        let _ = write!(
            text,
            "\n* {circumstances}\n\
            \n\
            | case | tool | rounds | within 120 s: nodes cordoned / pods evicted | last cordon | last eviction | end | requests a pod | memory of a process |\n\
            | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        );
        for row in rows {
            text += &row_beside(row);
        }
    }
    text
}

fn row_beside(row: &BesideRow) -> String {
    let seconds = |time: Option<f64>| match time {
        Some(time) if time >= 10.0 => format!("{time:.0} s"),
        Some(time) => format!("{time:.1} s"),
        None => "–".to_owned(),
    };
    let BesideRow { case, tool, rounds, cordoned_in_window, evicted_in_window, .. } = row;
    format!(
        "| {} | {tool} | {rounds} | {cordoned_in_window} / {evicted_in_window} | {} | {} | {} | {:.1} | {:.0} MiB |\n",
        case.in_words(),
        seconds(row.last_cordon_s),
        seconds(row.last_eviction_s),
        seconds(Some(row.end_s)),
        row.requests_a_pod,
        mib(row.peak_memory),
    )
}

fn how() -> String {
    let round_trip = ROUND_TRIP.as_millis();
    let tuned = nth::SETTINGS.map(|(name, value)| format!("`{name}={value}`")).join(", ");
    format!(
        "## How it is measured\n\
        \n\
        `make bench` measures the cases above; `CASES=750x2` chooses others, and prints a page that is not kept. `BEFORE=PATH`\n\
        names a `bootstrap` of another commit, which drains in turn with the new one. Speed is a ratio within one round; absolute\n\
        times are information. Tools take turns, and each round begins with another one. Every drain finds new nodes and new pods.\n\
        \n\
        * **Cluster**: a real control plane, a new one for each case, and kwok as kubelet. Pods exit at once, and nothing replaces\n  \
        them. A TCP proxy before the API server adds {round_trip} ms of round trip, for all tools. The API server runs with\n  \
        `GOGC=500`; kwok, controllers and scheduler run with `nice -n 10`. Both help a tool whose requests come in a burst, as\n  \
        Spillway's do. `deploy/optional/flow-control.yaml` is not applied.\n\
        * **AWS**: moto. EC2 has two buckets of `DescribeInstances` for each tool: 50 calls at once and 10 a second by ids\n  \
        alone, 100 and 20 with a filter. On AWS it is not verified that both serve one id. EKS answers ten `DescribeCluster` a\n  \
        second, Parameter Store 40 reads. In a case of several nodes each node is as large as a kubelet's. Lambda's queue retries\n  \
        as on AWS (`EXECUTIONS=10` allows the function so many at a time). The function is cold for each notice, after one\n  \
        self-test. It has the machine's processors; on Lambda it has 256/1769 of one. Lambda's own part of a start, and\n  \
        EventBridge's way, are in no figure.\n\
        * **A storm** is also measured with a tenth of its nodes and of these quotas, which needs few processors. Its last cordon\n  \
        is judged there: at most 2 s after the last answer that the quotas allow. Parameter Store is read when EKS has not\n  \
        answered for half a second.\n\
        * **Times** count from the notice: the event in Lambda's queue, the message in NTH's queue. Cordons and evictions are\n  \
        those that the API server answered, by its audit log. Spillway's drain ends after a wait for late pods. Calls come from\n  \
        the AWS side's journal, memory (`VmHWM`) and processor time from the kernel.\n\
        * **The evictions alone** are a bare loop: one process and one HTTP/2 connection for each node, all evictions at once, again\n  \
        after a 429. It is no drain: a drain has to do as much, and more.\n\
        * **Verdicts**: a count is judged by its worst round. A ratio is judged by its median: if the limit lies in the interval that\n  \
        holds the median with 95 % confidence (sign test), or there are fewer than six rounds, it is *undecided*. The number of\n  \
        rounds is fixed before the first. A dash stands for what was not measured, or did not happen in each round.\n\
        \n\
        aws-node-termination-handler (NTH) is measured only if `NTH=PATH` names its binary, in queue mode and *tuned*: {tuned}.\n\
        A release up to v1.25.6 ignores the last two (`go install github.com/aws/aws-node-termination-handler/cmd@v1.25.6`). With Go,\n\
        this builds a commit that knows them:\n\
        \n\
        ```sh\n\
        git clone https://github.com/aws/aws-node-termination-handler /tmp/nth && cd /tmp/nth\n\
        git checkout 62a8761d812b331620a0f006b55f70bcadb0462e      # the first with KUBE_API_QPS\n\
        CGO_ENABLED=0 go build -trimpath -ldflags \"-s -w\" -o nth ./cmd\n\
        cd - && make bench NTH=/tmp/nth/nth\n\
        ```\n\
        \n\
        `make release` refuses this page 60 days after its date, or when the bench's sources have changed.\n"
    )
}

/// Median, least and most; one number if they are equal.
fn spread(values: &[f64], digits: usize) -> String {
    let [middle, low, high] = [median(values), least(values), most(values)].map(|value| format!("{value:.digits$}"));
    if low == high { middle } else { format!("{middle} ({low} to {high})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{kept, read};
    use crate::test_support::results;

    #[test]
    fn page_has_a_column_for_each_tool_of_a_case() {
        let page = page(&results());
        assert!(page.contains("Written by `make bench RUNS=6` at commit 0123456789ab;"), "{page}");
        assert!(page.contains("## 1 node × 110 pods\n\n|  | Spillway | the evictions alone |\n"), "{page}");
        assert!(page.contains("| last eviction, s | 0.30 | 0.25 |\n"), "{page}");
        assert!(!page.contains("Beside other tools"), "{page}");
    }

    #[test]
    fn storm_names_the_seconds_of_the_processors() {
        let mut results = results();
        let storm = Case::new(150, 2);
        let run = |case, seconds| {
            let mut run = results.runs[0].clone();
            (run.case, run.figures.last_cordon_s) = (case, Some(seconds));
            run.figures.calls = [("DescribeInstances".to_owned(), 30)].into();
            run
        };
        results.runs = vec![run(storm, 6.0), run(storm.tenth().expect("a storm"), 3.5)];
        let page = page(&results);
        assert!(page.contains("comes after 3.5 s, with 2.0 EC2 calls a node. The other 2.5 s are"), "{page}");
    }

    #[test]
    fn kept_page_is_rendered_from_its_raw_results() {
        let rendered = page(&read(&kept("json")).expect("the raw results can be read"));
        let kept = std::fs::read_to_string(kept("md")).expect("the page");
        assert!(kept == rendered, "`spillway-bench render` writes docs/contributing/measured/bench.md");
    }
}
