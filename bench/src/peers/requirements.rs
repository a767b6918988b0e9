//! What is required, and whether it came true: a time by its ratios within a round, a count by its worst run. A drain of
//! Spillway's that failed misses what is required of its case.

use std::time::Duration;

use super::case::{Case, Tool};
use super::figures::{Figures, SPOT_WINDOW};
use super::results::{PeersResults, Run};
use super::{FAR, how_far};
use crate::measure::requirement::{Measured, Requirement, Verdict};
use crate::measure::statistics::most;

/// With one, a ratio of 2.46 would read as the 2.5 that is required.
const RATIO_DIGITS: usize = 2;
const REQUESTS_A_POD: f64 = 1.1;
const REQUESTS_A_NODE: f64 = 4.0;
const PEAK_MIB: f64 = 24.0;

pub(super) fn requirements(results: &PeersResults) -> Vec<Requirement> {
    let eviction = |case, tool, times| sooner(results, case, tool, "last eviction", times, |of| of.last_eviction);
    let cordon = |case, tool, times| sooner(results, case, tool, "last cordon", times, |of| of.last_cordon);
    let end = |case| sooner(results, case, Tool::NthTuned, "end", 1.0, |of| Some(of.end));
    vec![
        eviction(Case::FullNode, Tool::Kubectl, 30.0),
        eviction(Case::FullNode, Tool::Nth, 30.0),
        eviction(Case::FullNode, Tool::NthTuned, 2.5),
        eviction(Case::FullNodeSlowPods, Tool::NthTuned, 2.5),
        cordon(Case::FiftyNodes, Tool::NthTuned, 5.0),
        eviction(Case::FiftyNodes, Tool::NthTuned, 2.0),
        cordon(Case::FiftyNodesSlowPods, Tool::NthTuned, 5.0),
        eviction(Case::FiftyNodesSlowPods, Tool::NthTuned, 2.0),
        end(Case::FullNode),
        end(Case::FiftyNodes),
        all_in_the_window(results),
        eviction(Case::Budget, Tool::Kubectl, 5.0),
        eviction(Case::Budget, Tool::Nth, 5.0),
        eviction(Case::Budget, Tool::NthTuned, 5.0),
        at_worst(results, "requests a pod", REQUESTS_A_POD, Run::requests_a_pod),
        at_worst(results, "requests a node beside", REQUESTS_A_NODE, Run::requests_a_node),
        at_worst(results, "peak memory of a process, MiB", PEAK_MIB, Run::peak_mib),
    ]
}

/// How many times sooner Spillway is than another, far away.
fn sooner(
    results: &PeersResults,
    case: Case,
    tool: Tool,
    what: &str,
    required: f64,
    time: fn(&Figures) -> Option<Duration>,
) -> Requirement {
    let time_of = |tool: Tool, round: usize| {
        let run = results.of(case, FAR, tool).find(|run| run.round == round)?;
        time(&run.figures).map(|time| time.as_secs_f64())
    };
    let rounds: Vec<usize> = results.of(case, FAR, Tool::Spillway).map(|run| run.round).collect();
    let against = |of: &dyn Fn(usize) -> Option<f64>| -> Vec<f64> {
        rounds.iter().filter_map(|round| Some(time_of(tool, *round)? / of(*round)?)).collect()
    };
    let sooner = against(&|round| time_of(Tool::Spillway, round));
    let of_baseline = against(&|round| time_of(Tool::Baseline, round));
    let times = |ratios: &[f64]| Measured::of(ratios, RATIO_DIGITS, " ×");
    // One that came to its end and left something is no better than one that did not.
    let left = results.of(case, FAR, Tool::Spillway).filter(|run| time(&run.figures).is_none()).count();
    let failed = results.failed_of(|of, distance| of == case && distance == FAR);
    Requirement {
        what: format!("{}, {}: {what}, against {}", case.in_words(), how_far(FAR), tool.in_words()),
        required: format!("at least {required} × sooner"),
        measured: times(&sooner),
        verdict: judged(&sooner, |ratios| Verdict::at_least(required, ratios)),
        of_baseline: (!of_baseline.is_empty()).then(|| times(&of_baseline)),
    }
    .unless_failed(left + failed)
}

fn all_in_the_window(results: &PeersResults) -> Requirement {
    let fifty = spillways(results).filter(|run| run.case.nodes() == 50);
    let ends: Vec<f64> = fifty.map(|run| run.figures.end.as_secs_f64()).collect();
    let window = SPOT_WINDOW.as_secs_f64();
    Requirement {
        what: "50 nodes × 20 pods, in each case: the last drain's end".to_owned(),
        required: format!("at most {window} s"),
        measured: Measured::of(&ends, 1, " s"),
        verdict: judged(&ends, |ends| Verdict::of(most(ends) <= window)),
        of_baseline: None,
    }
    .unless_failed(results.failed_of(|case, _| case.nodes() == 50))
}

/// Of Spillway's runs of every case without a budget: a pod that one holds is asked for again.
fn at_worst(results: &PeersResults, what: &str, required: f64, value: impl Fn(&Run) -> f64) -> Requirement {
    let values: Vec<f64> = spillways(results).filter(|run| !run.case.has_a_budget()).map(value).collect();
    let worst = |values: &[f64]| Measured::text(format!("{:.1}", most(values)));
    Requirement {
        what: format!("{what}, without a budget, at worst"),
        required: format!("at most {required}"),
        measured: if values.is_empty() { Measured::nothing() } else { worst(&values) },
        verdict: judged(&values, |values| Verdict::of(most(values) <= required)),
        of_baseline: None,
    }
    .unless_failed(results.failed_of(|case, _| !case.has_a_budget()))
}

fn judged(values: &[f64], judge: impl Fn(&[f64]) -> Verdict) -> Verdict {
    if values.is_empty() { Verdict::Undecided } else { judge(values) }
}

fn spillways(results: &PeersResults) -> impl Iterator<Item = &Run> {
    results.runs.iter().filter(|run| run.tool == Tool::Spillway)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::report::Report as _;
    use crate::peers::results::Failed;
    use crate::test_support::circumstances;

    fn run(tool: Tool, round: usize, last_eviction_s: u64) -> Run {
        let time = Duration::from_secs(last_eviction_s);
        let figures = Figures {
            first_cordon: Some(time),
            last_cordon: Some(time),
            last_eviction: Some(time),
            end: time,
            cordoned_in_window: 1,
            evicted_in_window: 110,
            before_cordon: 0,
            for_pods: 121,
            beside: 5,
            processor_time: Duration::ZERO,
            peak_memory: 24 << 20,
        };
        Run { case: Case::FullNode, distance: FAR, round, tool, figures }
    }

    fn results(runs: Vec<Run>) -> PeersResults {
        PeersResults {
            circumstances: circumstances("make peers RUNS=2"),
            rests: crate::measure::machine::Rests::default(),
            runs,
            failed: Vec::new(),
            kubectl: "v1.36.3".to_owned(),
            nth: "v1.25.6".to_owned(),
            unmeasured: Vec::new(),
        }
    }

    /// Spillway and `kubectl drain`, in turn; a full node.
    fn six_rounds() -> Vec<Run> {
        (0..6).flat_map(|round| [run(Tool::Spillway, round, 1), run(Tool::Kubectl, round, 40)]).collect()
    }

    fn against(tool: Tool, results: &PeersResults) -> Requirement {
        sooner(results, Case::FullNode, tool, "last eviction", 30.0, |of| of.last_eviction)
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let rounds = |count| {
            let runs = (0..count).flat_map(|round| {
                let (ours, theirs) = if round % 2 == 0 { (1, 30) } else { (2, 120) };
                [run(Tool::Spillway, round, ours), run(Tool::Kubectl, round, theirs)]
            });
            let requirement = against(Tool::Kubectl, &results(runs.collect()));
            (requirement.measured, requirement.verdict)
        };
        let measured = |interval: &str| Measured {
            value: "30.00 ×".to_owned(),
            interval: interval.to_owned(),
            range: "30.00 to 60.00".to_owned(),
        };
        assert_eq!(rounds(2), (measured(""), Verdict::Undecided));
        assert_eq!(rounds(6), (measured("30.00 to 60.00"), Verdict::Met));
    }

    #[test]
    fn beside_it_stands_the_baseline_in_its_place() {
        let runs = vec![run(Tool::Spillway, 0, 2), run(Tool::Kubectl, 0, 30), run(Tool::Baseline, 0, 1)];
        let requirement = against(Tool::Kubectl, &results(runs));
        let baseline = requirement.of_baseline.expect("the baseline was measured");
        assert_eq!((requirement.measured.value.as_str(), baseline.value.as_str()), ("15.00 ×", "30.00 ×"));
    }

    #[test]
    fn nothing_is_decided_against_whom_nobody_measured() {
        let requirement = against(Tool::NthTuned, &results(vec![run(Tool::Spillway, 0, 1)]));
        assert_eq!((requirement.measured, requirement.verdict), (Measured::nothing(), Verdict::Undecided));
    }

    #[test]
    fn a_failed_drain_of_ours_misses_what_is_required_of_its_case_and_another_ones_does_not() {
        let failed = |tool, case| {
            let mut results = results(six_rounds());
            results.failed.push(Failed { case, distance: FAR, round: 6, tool, why: "it hung".to_owned() });
            against(Tool::Kubectl, &results).verdict
        };
        assert_eq!(failed(Tool::Spillway, Case::FullNode), Verdict::Missed);
        assert_eq!(failed(Tool::Kubectl, Case::FullNode), Verdict::Met);
        assert_eq!(failed(Tool::Spillway, Case::Budget), Verdict::Met);
    }

    #[test]
    fn a_drain_of_ours_that_left_a_pod_misses_it_too() {
        let mut runs = six_rounds();
        runs[0].figures.last_eviction = None;
        assert_eq!(against(Tool::Kubectl, &results(runs)).verdict, Verdict::Missed);
    }

    #[test]
    fn what_is_kept_renders_the_same_page() {
        let mut results = results(six_rounds());
        results.runs[1].figures.last_cordon = None;
        let failed = Failed { case: Case::Budget, distance: FAR, round: 0, tool: Tool::Nth, why: "it hung".to_owned() };
        results.failed.push(failed);
        let page = crate::measure::report::keep(&results, None).expect("a page");
        assert_eq!(page, results.page());
        assert!(
            page.contains("* **failed**: 1 node × 20 pods behind `maxUnavailable: 1`, +20 ms, NTH, round 1: it hung"),
            "{page}"
        );
    }

    #[test]
    fn requests_and_memory_are_judged_by_the_worst_run() {
        let mut worse = run(Tool::Spillway, 1, 1);
        worse.figures.for_pods = 122;
        let results = results(vec![run(Tool::Spillway, 0, 1), worse]);
        let all = requirements(&results);
        let verdict = |what: &str| all.iter().find(|one| one.what.starts_with(what)).map(|one| one.verdict);
        assert_eq!(verdict("requests a pod"), Some(Verdict::Missed));
        assert_eq!(verdict("requests a node"), Some(Verdict::Missed));
        assert_eq!(verdict("peak memory"), Some(Verdict::Met));
    }
}
