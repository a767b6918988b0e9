//! What was wanted, and whether it came true: a time by its ratios within a round, a count by its worst run.

use std::fmt::Write as _;
use std::time::Duration;

use super::case::{Case, Tool};
use super::figures::{Figures, SPOT_WINDOW};
use super::results::{Results, Run};
use super::{FAR, how_far};
use crate::measure::goal::{Goal, Verdict};
use crate::measure::statistics::{in_words, least, median, most};

const NOT_MEASURED: &str = "not measured";
/// With one, a ratio of 2.46 would read as the 2.5 that is wanted.
const RATIO_DIGITS: usize = 2;
const REQUESTS_A_POD: f64 = 1.1;
const REQUESTS_A_NODE: f64 = 4.0;
const PEAK_MIB: f64 = 24.0;

pub(super) fn goals(results: &Results) -> Vec<Goal> {
    let eviction = |case, tool, times| sooner(results, case, tool, "last eviction", times, |of| of.last_eviction);
    let cordon = |case, tool, times| sooner(results, case, tool, "last cordon", times, |of| of.last_cordon);
    vec![
        eviction(Case::FullNode, Tool::Kubectl, 30.0),
        eviction(Case::FullNode, Tool::Nth, 30.0),
        eviction(Case::FullNode, Tool::NthTuned, 2.5),
        eviction(Case::FullNodeSlowPods, Tool::NthTuned, 2.5),
        cordon(Case::FiftyNodes, Tool::NthTuned, 5.0),
        eviction(Case::FiftyNodes, Tool::NthTuned, 2.0),
        cordon(Case::FiftyNodesSlowPods, Tool::NthTuned, 5.0),
        eviction(Case::FiftyNodesSlowPods, Tool::NthTuned, 2.0),
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
    results: &Results,
    case: Case,
    tool: Tool,
    what: &str,
    wanted: f64,
    time: fn(&Figures) -> Option<Duration>,
) -> Goal {
    let time_of = |tool: Tool, round: usize| {
        let run = results.of(case, FAR, tool).find(|run| run.round == round)?;
        time(&run.figures).map(|time| time.as_secs_f64())
    };
    let rounds: Vec<usize> = results.of(case, FAR, Tool::Spillway).map(|run| run.round).collect();
    let against = |of: &dyn Fn(usize) -> Option<f64>| -> Vec<f64> {
        rounds.iter().filter_map(|round| Some(time_of(tool, *round)? / of(*round)?)).collect()
    };
    let sooner = against(&|round| time_of(Tool::Spillway, round));
    let soonest = against(&|round| time_of(Tool::Floor, round));
    let mut found = times(&sooner);
    if !soonest.is_empty() {
        let _ = write!(found, "; at most {} can be", times(&soonest));
    }
    Goal {
        what: format!("{}, {}: {what}, against {}", case.in_words(), how_far(FAR), tool.in_words()),
        wanted: format!("at least {wanted} × sooner"),
        found,
        verdict: judged(&sooner, |ratios| Verdict::at_least(wanted, ratios)),
    }
}

fn all_in_the_window(results: &Results) -> Goal {
    let fifty = spillways(results).filter(|run| run.case.nodes() == 50);
    let ends: Vec<f64> = fifty.map(|run| run.figures.end.as_secs_f64()).collect();
    let window = SPOT_WINDOW.as_secs_f64();
    Goal {
        what: "50 nodes × 20 pods, in both cases: the last drain's end".to_owned(),
        wanted: format!("at most {window} s"),
        found: seconds(&ends),
        verdict: judged(&ends, |ends| Verdict::of(most(ends) <= window)),
    }
}

/// Of Spillway's runs of every case without a budget: a pod that one holds is asked for again.
fn at_worst(results: &Results, what: &str, wanted: f64, value: impl Fn(&Run) -> f64) -> Goal {
    let values: Vec<f64> = spillways(results).filter(|run| !run.case.has_a_budget()).map(value).collect();
    Goal {
        what: format!("{what}, without a budget, at worst"),
        wanted: format!("at most {wanted}"),
        found: if values.is_empty() { NOT_MEASURED.to_owned() } else { format!("{:.1}", most(&values)) },
        verdict: judged(&values, |values| Verdict::of(most(values) <= wanted)),
    }
}

fn judged(values: &[f64], judge: impl Fn(&[f64]) -> Verdict) -> Verdict {
    if values.is_empty() { Verdict::Undecided } else { judge(values) }
}

fn spillways(results: &Results) -> impl Iterator<Item = &Run> {
    results.runs.iter().filter(|run| run.tool == Tool::Spillway)
}

fn times(ratios: &[f64]) -> String {
    if ratios.is_empty() { NOT_MEASURED.to_owned() } else { in_words(ratios, RATIO_DIGITS, " ×") }
}

fn seconds(values: &[f64]) -> String {
    match values {
        [] => NOT_MEASURED.to_owned(),
        [only] => format!("{only:.1} s"),
        many => format!("{:.1} s ({:.1} to {:.1})", median(many), least(many), most(many)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn results(runs: Vec<Run>) -> Results {
        Results { runs, ..Results::default() }
    }

    fn against(tool: Tool, runs: Vec<Run>) -> Goal {
        sooner(&results(runs), Case::FullNode, tool, "last eviction", 30.0, |of| of.last_eviction)
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let rounds = |count| {
            let runs = (0..count).flat_map(|round| {
                let (ours, theirs) = if round % 2 == 0 { (1, 30) } else { (2, 120) };
                [run(Tool::Spillway, round, ours), run(Tool::Kubectl, round, theirs)]
            });
            let goal = against(Tool::Kubectl, runs.collect());
            (goal.found, goal.verdict)
        };
        assert_eq!(rounds(2), ("30.00 × (30.00 to 60.00)".to_owned(), Verdict::Undecided));
        assert_eq!(rounds(6), ("30.00 ×, surely 30.00 to 60.00 (30.00 to 60.00)".to_owned(), Verdict::Met));
    }

    #[test]
    fn beside_it_stands_what_nobody_can_be_sooner_than() {
        let runs = vec![run(Tool::Spillway, 0, 2), run(Tool::Kubectl, 0, 30), run(Tool::Floor, 0, 1)];
        assert_eq!(against(Tool::Kubectl, runs).found, "15.00 ×; at most 30.00 × can be");
    }

    #[test]
    fn nothing_is_decided_against_whom_nobody_measured() {
        let goal = against(Tool::NthTuned, vec![run(Tool::Spillway, 0, 1)]);
        assert_eq!((goal.found.as_str(), goal.verdict), ("not measured", Verdict::Undecided));
    }

    #[test]
    fn requests_and_memory_are_judged_by_the_worst_run() {
        let mut worse = run(Tool::Spillway, 1, 1);
        worse.figures.for_pods = 122;
        let results = results(vec![run(Tool::Spillway, 0, 1), worse]);
        let goals = goals(&results);
        let verdict = |what: &str| goals.iter().find(|goal| goal.what.starts_with(what)).map(|goal| goal.verdict);
        assert_eq!(verdict("requests a pod"), Some(Verdict::NotMet));
        assert_eq!(verdict("requests a node"), Some(Verdict::NotMet));
        assert_eq!(verdict("peak memory"), Some(Verdict::Met));
    }
}
