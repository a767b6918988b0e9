//! Requirements, and whether they are met. Pure. A count is judged by its worst round, a time by the median of ratios
//! within a round. A failed drain of Spillway misses the requirements of its case.

use crate::case::{Case, FIFTY_NODES, FULL_NODE, LARGE_NODE, STORM, Tool};
use crate::figures::Figures;
use crate::results::{Results, Run};
use crate::starts::{Claims, Size};
use crate::statistics::{FEWEST, Verdict, least, median, median_interval, most, to_f64};

/// A row of a table of requirements.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) required: String,
    pub(crate) measured: String,
    /// 95 % confidence interval of the median.
    pub(crate) interval: String,
    pub(crate) verdict: Verdict,
}

const OPENING: [&str; 3] = ["patch nodes", "list pods", "create pods/eviction"];
/// Claim, list, and a watch, which a busy API server may end once.
const MORE_REQUESTS_THAN_PODS: usize = 5;
const TIMES_THE_BASELINE: f64 = 1.25;
const TIMES_AN_EMPTY_START: f64 = 3.0;
const ZIPPED_MB: f64 = 5.0;
const PEAK_MIB: f64 = 20.0;

/// AWS' quotas on the way to a cordon: calls at once, and calls a second from then on. The two buckets of `DescribeInstances`
/// together; EKS and Parameter Store together, less the 20 calls of the latter's first half second, in which it is not read.
const QUOTAS: [(f64, f64); 2] = [(150.0, 30.0), (30.0, 50.0)];
/// Longest time from the last answer that the quotas allow to the last cordon.
const BEHIND_QUOTAS_S: f64 = 2.0;
const EC2_CALLS_A_NODE: f64 = 3.0;

type Value = fn(&Figures) -> Option<f64>;

/// Required ratios to NTH: case, figure, how many times sooner.
const SOONER_THAN_NTH: [(Case, &str, Value, f64); 5] = [
    (FULL_NODE, "last eviction", |of| of.last_eviction_s, 2.5),
    (FULL_NODE, "end", |of| Some(of.end_s), 1.0),
    (FIFTY_NODES, "last cordon", |of| of.last_cordon_s, 5.0),
    (FIFTY_NODES, "last eviction", |of| of.last_eviction_s, 2.0),
    (FIFTY_NODES, "end", |of| Some(of.end_s), 1.0),
];

/// Figures that must not get worse: name, figure, how many times the figure before it may be.
const AGAINST_BEFORE: [(&str, Value, f64); 7] = [
    ("last cordon", |of| of.last_cordon_s, 1.1),
    ("last eviction", |of| of.last_eviction_s, 1.1),
    ("requests", |of| Some(to_f64(of.for_pods + of.other_requests)), 1.05),
    ("AWS calls", |of| Some(to_f64(of.calls.values().sum::<usize>())), 1.05),
    ("bytes", |of| Some(to_f64(of.traffic.bytes)), 1.05),
    ("peak memory of a process", |of| Some(to_f64(of.peak_memory)), 1.05),
    ("processor time", |of| Some(of.processor_s), 1.1),
];

pub(crate) fn requirements(results: &Results) -> Vec<Row> {
    let mut rows = builds(results);
    for case in results.cases() {
        rows.extend(of_case(results, case));
    }
    for (case, what, value, times) in SOONER_THAN_NTH {
        let ratios = results.ratios(case, (Tool::Nth, Tool::Spillway), value);
        if !ratios.is_empty() {
            let what = format!("{}: {what}, against NTH", case.in_words());
            rows.push(by_median(what, format!("at least {times} × sooner"), &ratios, |ratio| ratio >= times));
        }
    }
    rows
}

fn builds(results: &Results) -> Vec<Row> {
    let starts: Vec<f64> = results.starts.iter().map(|start| start.spillway_ms / start.empty_ms).collect();
    let zipped: Vec<f64> = results.sizes.iter().filter(|size| size.tool == Tool::Spillway).map(in_mb).collect();
    let claims: Vec<_> = results.claims.iter().filter(|claims| claims.tool == Tool::Spillway).collect();
    let calls = |count: fn(&Claims) -> usize| claims.iter().map(|one| to_f64(count(one))).collect();
    let (ec2, eks): (Vec<f64>, Vec<f64>) = (calls(|one| one.ec2), calls(|one| one.eks));
    let what = "start: execution to first poll, against an empty function".to_owned();
    let required = format!("at most {TIMES_AN_EMPTY_START} ×");
    vec![
        by_worst("package, zipped, MB", format!("at most {ZIPPED_MB}"), 2, &zipped, |mb| mb <= ZIPPED_MB),
        by_median(what, required, &starts, |times| times <= TIMES_AN_EMPTY_START),
        by_worst("warm drain: EC2 calls", "1".to_owned(), 0, &ec2, |calls| is(calls, 1)),
        by_worst("warm drain: EKS calls", "0".to_owned(), 0, &eks, |calls| is(calls, 0)),
    ]
}

fn of_case(results: &Results, case: Case) -> Vec<Row> {
    let runs: Vec<&Run> = results.of(case, Tool::Spillway).collect();
    let all = |value: fn(&Figures) -> f64| -> Vec<f64> { runs.iter().map(|run| value(&run.figures)).collect() };
    let (name, pods) = (case.in_words(), case.nodes * case.pods);
    let mut rows = match case {
        Case { nodes: 1, .. } => requests(&name, case, &runs),
        Case { part: 2.., .. } => vec![last_cordon(&name, case, &runs)],
        Case { .. } => Vec::new(),
    };
    if case == LARGE_NODE {
        let what = format!("{name}: peak memory, MiB");
        let peaks = all(|of| mib(of.peak_memory));
        rows.push(by_worst(&what, format!("at most {PEAK_MIB}"), 1, &peaks, |mib| mib <= PEAK_MIB));
    }
    if case == FULL_NODE {
        let ratios = results.ratios(case, (Tool::Spillway, Tool::Baseline), |of| of.last_eviction_s);
        let required = format!("at most {TIMES_THE_BASELINE} ×");
        let what = format!("{name}: last eviction, against the evictions alone");
        rows.push(by_median(what, required, &ratios, |times| times <= TIMES_THE_BASELINE));
    }
    if case.nodes > 1 && case.part == 1 {
        let (cordoned, evicted) = (all(|of| to_f64(of.cordoned_in_window)), all(|of| to_f64(of.evicted_in_window)));
        let what = format!("{name}: nodes cordoned within 120 s");
        rows.push(by_worst(&what, case.nodes.to_string(), 0, &cordoned, |count| is(count, case.nodes)));
        let what = format!("{name}: pods evicted within 120 s");
        rows.push(by_worst(&what, pods.to_string(), 0, &evicted, |count| is(count, pods)));
    }
    if case.nodes >= STORM {
        let calls_a_node = |run: &&Run| to_f64(run.figures.calls_of("DescribeInstances")) / to_f64(case.nodes);
        let calls: Vec<f64> = runs.iter().map(calls_a_node).collect();
        let what = format!("{name}: EC2 calls a node");
        let required = format!("at most {EC2_CALLS_A_NODE}");
        rows.push(by_worst(&what, required, 2, &calls, |count| count <= EC2_CALLS_A_NODE));
    }
    let broken = results.failed.iter().filter(|failed| failed.case == case && failed.tool == Tool::Spillway).count();
    let failed = runs.iter().map(|run| run.figures.failed).sum::<usize>() + broken;
    for row in &mut rows {
        if failed > 0 {
            row.measured = format!("{}; {failed} failed", row.measured);
            row.verdict = Verdict::Missed;
        }
    }
    rows
}

fn last_cordon(name: &str, case: Case, runs: &[&Run]) -> Row {
    let notices = to_f64(case.nodes * case.part);
    let after = QUOTAS.map(|(at_once, a_second)| (notices - at_once) / a_second).into_iter().fold(0.0, f64::max);
    let limit = after + BEHIND_QUOTAS_S;
    let last: Vec<f64> = runs.iter().map(|run| run.figures.last_cordon_s.unwrap_or(f64::INFINITY)).collect();
    let what = format!("{name}: last cordon, s (the quotas' {after:.1} s and {BEHIND_QUOTAS_S} s)");
    let middle = if last.is_empty() { f64::INFINITY } else { median(&last) };
    Row {
        verdict: Verdict::of(middle <= limit),
        ..by_worst(&what, format!("at most {limit:.1}, the median"), 1, &last, |_| true)
    }
}

/// Requests of the drain of one node.
fn requests(name: &str, case: Case, runs: &[&Run]) -> Vec<Row> {
    let all = |value: fn(&Figures) -> f64| -> Vec<f64> { runs.iter().map(|run| value(&run.figures)).collect() };
    let limit = case.pods + MORE_REQUESTS_THAN_PODS;
    let (requests, connections) =
        (all(|of| to_f64(of.for_pods + of.other_requests)), all(|of| to_f64(of.traffic.connections)));
    let hellos = all(|of| to_f64(of.traffic.client_hellos));
    let other = runs.iter().map(|run| &run.figures.opening).find(|opening| **opening != OPENING);
    vec![
        Row {
            what: format!("{name}: first requests"),
            required: OPENING.join(", "),
            measured: other.map_or_else(|| OPENING.join(", "), |opening| opening.join(", ")),
            interval: String::new(),
            verdict: Verdict::of(other.is_none()),
        },
        by_worst(&format!("{name}: requests"), format!("at most {limit}"), 0, &requests, |count| {
            count <= to_f64(limit)
        }),
        by_worst(&format!("{name}: connections"), "1".to_owned(), 0, &connections, |count| is(count, 1)),
        by_worst(&format!("{name}: TLS handshakes"), "1".to_owned(), 0, &hellos, |count| is(count, 1)),
    ]
}

/// Ratios to the build that `BEFORE=` named.
pub(crate) fn against_before(results: &Results) -> Vec<Row> {
    let pair = (Tool::Spillway, Tool::Before);
    let at_most = |what: String, ratios: &[f64], times: f64| {
        by_median(what, format!("at most {times} ×"), ratios, |ratio| ratio <= times)
    };
    let mut rows = Vec::new();
    let size = |tool: Tool| results.sizes.iter().find(|size| size.tool == tool).map(in_mb);
    if let (Some(now), Some(before)) = (size(Tool::Spillway), size(Tool::Before)) {
        let times = 1.02;
        rows.push(by_worst("package, zipped", format!("at most {times} ×"), 3, &[now / before], |of| of <= times));
    }
    let starts = results.starts.iter().filter_map(|start| Some(start.spillway_ms / start.before_ms?));
    rows.push(at_most("start: execution to first poll".to_owned(), &starts.collect::<Vec<_>>(), 1.1));
    for (what, value) in [
        ("empty node: notice to cordon, cold", (|of| of.cold_ms) as fn(&Claims) -> f64),
        ("empty node: notice to cordon, warm", |of| of.warm_ms),
    ] {
        let of = |tool: Tool| results.claims.iter().filter(move |claims| claims.tool == tool);
        let in_round = |round: usize| of(Tool::Before).find(|before| before.round == round);
        let ratios = of(Tool::Spillway).filter_map(|now| Some(value(now) / value(in_round(now.round)?)));
        rows.push(at_most(what.to_owned(), &ratios.collect::<Vec<_>>(), 1.1));
    }
    for case in results.whole_cases() {
        for (what, value, times) in AGAINST_BEFORE {
            let ratios = results.ratios(case, pair, value);
            rows.push(at_most(format!("{}: {what}", case.in_words()), &ratios, times));
        }
    }
    rows
}

/// A row that the worst of all values decides. Nothing measured is undecided.
fn by_worst(what: &str, required: String, digits: usize, values: &[f64], is_met: impl Fn(f64) -> bool) -> Row {
    let verdict = if values.is_empty() { Verdict::Undecided } else { Verdict::of(values.iter().copied().all(is_met)) };
    Row { what: what.to_owned(), required, measured: spread(values, digits), interval: String::new(), verdict }
}

/// A row that the confidence interval of the median decides.
fn by_median(what: String, required: String, ratios: &[f64], is_met: impl Fn(f64) -> bool) -> Row {
    let verdict = Verdict::of_median(ratios, is_met);
    let interval = if ratios.len() < FEWEST {
        String::new()
    } else {
        let (low, high) = median_interval(ratios);
        format!("{low:.2} to {high:.2}")
    };
    let measured = if ratios.is_empty() { "not measured".to_owned() } else { format!("{:.2} ×", median(ratios)) };
    Row { what, required, measured, interval, verdict }
}

/// From the least to the most; one number if they are equal.
fn spread(values: &[f64], digits: usize) -> String {
    if values.is_empty() {
        return "not measured".to_owned();
    }
    let [low, high] = [least(values), most(values)].map(|value| format!("{value:.digits$}"));
    if low == high { low } else { format!("{low} to {high}") }
}

fn is(value: f64, count: usize) -> bool {
    (value - to_f64(count)).abs() < 0.5
}

fn in_mb(size: &Size) -> f64 {
    to_f64(size.zipped) / 1e6
}

pub(crate) fn mib(count: u64) -> f64 {
    to_f64(count) / 1024.0 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Failed;
    use crate::test_support::results;

    fn verdict(results: &Results, what: &str) -> Option<Verdict> {
        requirements(results).into_iter().find(|row| row.what.contains(what)).map(|row| row.verdict)
    }

    #[test]
    fn good_rounds_meet_every_requirement() {
        let missed: Vec<Row> = requirements(&results()).into_iter().filter(|row| row.verdict != Verdict::Met).collect();
        assert!(missed.is_empty(), "{missed:#?}");
    }

    #[test]
    fn storm_is_judged_by_its_calls_and_by_its_tenth() {
        let storm = |case: Case, last, calls| {
            let mut results = results();
            for run in &mut results.runs {
                run.case = case;
                run.figures.last_cordon_s = last;
                run.figures.calls = [("DescribeInstances".to_owned(), calls)].into();
            }
            results
        };
        for (nodes, last, expected) in [
            (750, Some(21.9), Verdict::Met),
            (750, Some(22.1), Verdict::Missed),
            (750, None, Verdict::Missed),
            (150, Some(4.3), Verdict::Met),
            (150, Some(4.5), Verdict::Missed),
        ] {
            let tenth = Case::new(nodes, 2).tenth().expect("a storm");
            assert_eq!(verdict(&storm(tenth, last, 0), "last cordon"), Some(expected), "{nodes} {last:?}");
        }
        for (calls, expected) in [(2_250, Verdict::Met), (2_251, Verdict::Missed)] {
            let results = storm(Case::new(750, 2), Some(40.0), calls);
            assert_eq!(
                [verdict(&results, "EC2 calls a node"), verdict(&results, "last cordon")],
                [Some(expected), None]
            );
        }
    }

    #[test]
    fn failed_drain_misses_the_requirements_of_its_case() {
        let mut results = results();
        let failed = Failed { case: FULL_NODE, tool: Tool::Spillway, round: 6, why: "it hung".to_owned() };
        results.failed.push(Failed { tool: Tool::Baseline, ..failed.clone() });
        assert_eq!(verdict(&results, "110 pods: requests"), Some(Verdict::Met));
        results.failed.push(failed);
        assert_eq!(verdict(&results, "110 pods: requests"), Some(Verdict::Missed));
        assert_eq!(verdict(&results, "package"), Some(Verdict::Met));
    }

    #[test]
    fn one_round_with_too_many_requests_misses() {
        let mut results = results();
        results.runs[0].figures.for_pods = 114;
        assert_eq!(verdict(&results, "110 pods: requests"), Some(Verdict::Missed));
    }

    #[test]
    fn ratio_to_before_is_of_one_round() {
        let mut results = results();
        let times = |run: &Run, seconds: f64| Some(seconds * to_f64(run.round + 1));
        let mut before: Vec<Run> = results.of(FULL_NODE, Tool::Spillway).cloned().collect();
        for run in &mut before {
            run.tool = Tool::Before;
            run.figures.last_eviction_s = times(run, 0.15);
        }
        for run in &mut results.runs {
            run.figures.last_eviction_s = times(run, 0.3);
        }
        results.runs.extend(before);
        let rows = against_before(&results);
        let row = rows.iter().find(|row| row.what.contains("last eviction")).expect("a row");
        assert_eq!((row.interval.as_str(), row.verdict), ("2.00 to 2.00", Verdict::Missed));
        let row = rows.iter().find(|row| row.what.contains("requests")).expect("a row");
        assert_eq!((row.measured.as_str(), row.verdict), ("1.00 ×", Verdict::Met));
    }
}
