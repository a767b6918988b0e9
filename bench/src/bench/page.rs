//! The page: what is required and was measured, the times behind it, and how they were taken.

use std::fmt::Write as _;
use std::time::Duration;

use spillway_bed::processor_share::MB_OF_A_PROCESSOR;

use super::drain::Drain;
use super::requirements::{in_millions, of_all, requirements};
use super::results::{BenchResults, Round, Turn};
use super::starts::Starts;
use super::{FAR, MEMORY_MB, PODS};
use crate::measure::report::Report;
use crate::measure::requirement;
use crate::measure::statistics::{in_words, least, median, most};

impl Report for BenchResults {
    const FILE: &'static str = "bench";

    fn page(&self) -> String {
        page(self)
    }
}

fn page(results: &BenchResults) -> String {
    let table = requirement::table(&requirements(results));
    [head(results), table, drains(results), start(results), how()].join("\n")
}

fn head(results: &BenchResults) -> String {
    let mut text = results.circumstances.head("How fast and how small", BenchResults::FILE);
    let _ = writeln!(
        text,
        "* {runs} runs; a number stands for the median, in brackets the least and the most; {rests}\n\
        * the binary has {binary:.1} MB",
        runs = results.rounds.len(),
        rests = results.rests.in_words(),
        binary = in_millions(results.size.binary),
    );
    for failed in &results.failed {
        let _ = writeln!(text, "* **failed**: {failed}");
    }
    text
}

fn drains(results: &BenchResults) -> String {
    let far = FAR.as_millis();
    let mut text = format!(
        "## The times of a drain of {PODS} pods that exit at once\n\
        \n\
        In milliseconds, from the event handed to a warm function. *Baseline*: a bare loop that makes one HTTP/2\n\
        connection and posts the same evictions over it, to its last answer, in turn with the drains.\n\
        \n\
        | | no delay | +{far} ms | +{far} ms, {MEMORY_MB}/{MB_OF_A_PROCESSOR} of a processor |\n| --- | --- | --- | --- |\n",
    );
    let at_share: Vec<&Drain> = results.rounds.iter().filter_map(|round| round.at_share.as_ref()).collect();
    let mut row = |what: &str, value: fn(&Drain) -> Duration| {
        let near = milliseconds(&of_all(&results.rounds, |round| value(&round.near.drain)));
        let far = milliseconds(&of_all(&results.rounds, |round| value(&round.far.drain)));
        let limited = if at_share.is_empty() {
            "this machine let us limit nothing".to_owned()
        } else {
            milliseconds(&of_all(&at_share, |drain| value(drain)))
        };
        let _ = writeln!(text, "| {what} | {near} | {far} | {limited} |");
    };
    row("claim received", |drain| drain.to_claim);
    row("first eviction received", |drain| drain.evicted().to_first);
    row("last eviction answered", |drain| drain.evicted().to_last_answer);
    row("pods gone, answer given", |drain| drain.to_end);
    row("of it, claim received to last eviction answered", Drain::since_claim);
    let near_and_far = |what: &str, cell: &dyn Fn(fn(&Round) -> &Turn) -> String| {
        format!("| {what} | {} | {} | – |\n", cell(|round| &round.near), cell(|round| &round.far))
    };
    let mut row = |what: &str, value: fn(&Turn) -> Duration| {
        text += &near_and_far(what, &|turn| milliseconds(&of_all(&results.rounds, |round| value(turn(round)))));
    };
    row("baseline", |turn| turn.baseline.with_connection);
    row("baseline, had it been connected before", |turn| turn.baseline.evictions);
    let mut row = |what: &str, value: fn(&Turn) -> f64| {
        text += &near_and_far(what, &|turn| in_words(&of_all(&results.rounds, |round| value(turn(round))), 2, ""));
    };
    row("last eviction, × a baseline that had been connected before", Turn::against_connected_baseline);
    row("from the claim on, × such a baseline", Turn::claim_against_connected_baseline);
    text
}

fn start(results: &BenchResults) -> String {
    let BenchResults { starts, claims, .. } = results;
    let median_of = |value: fn(&Starts) -> f64| median(&of_all(starts, value));
    let whole = median_of(|start| ms(start.drain) - ms(start.empty));
    let certificates = median_of(|start| ms(start.drain) - ms(start.one_certificate));
    let program = median_of(|start| ms(start.drain_ends) - ms(start.empty_ends));
    let rest = whole - certificates - program;
    let of = |value: fn(&Starts) -> Duration| milliseconds(&of_all(starts, value));
    format!(
        "## Starts\n\
        \n\
        In milliseconds; {turns} starts each, in turn, before the test bed starts and with every file in memory: what\n\
        Lambda adds before it executes the binary is not in it.\n\
        \n\
        | | |\n| --- | --- |\n\
        | from execution to the first poll of the Runtime API | {drain} |\n\
        | the same of an empty function, `lambda_runtime` alone | {empty} |\n\
        | **difference** | {whole:.1} |\n\
        | of it: reading the system's certificates (none left, when given a single one) | {certificates:.1} |\n\
        | of it: a larger program, logs, settings (both programs made to end there) | {program:.1} |\n\
        | of it: the rest, not separated: AWS configuration, HTTP client, three SDK clients | {rest:.1} |\n\
        | cold, +{far} ms: execution to claim received | {cold} |\n\
        | warm, +{far} ms: event to claim received | {warm} |\n",
        turns = starts.len(),
        far = FAR.as_millis(),
        drain = of(|start| start.drain),
        empty = of(|start| start.empty),
        cold = milliseconds(&of_all(claims, |claims| claims.cold)),
        warm = milliseconds(&of_all(claims, |claims| claims.warm)),
    )
}

fn how() -> String {
    format!(
        "## How it is measured\n\
        \n\
        The function is driven over the Lambda Runtime API by the test bed, frozen between events. It has a whole\n\
        processor, but in the last column: there a control group's quota leaves it {MEMORY_MB}/{MB_OF_A_PROCESSOR} of one, what Lambda gives\n\
        for the template's {MEMORY_MB} MB, once it has started. The API server is a real kube-apiserver with\n\
        aws-iam-authenticator; it checks a token once, as on EKS, so the first request of every drain and of every\n\
        baseline pays for that. kwok plays the kubelet. A node's pods belong to one controller, which puts none back. Round\n\
        trips are added by a TCP proxy on the way to the API server alone. AWS is played by moto, so what EC2 takes in life\n\
        is not in it. One drain of an empty node comes first and is not counted.\n\
        \n\
        Requests and their times come from the API server's audit log, calls from the AWS side's journal, connections\n\
        and TLS handshakes from the proxy, memory from the kernel (`VmHWM`). Counts are of the drains of {PODS} pods,\n\
        and the worst run decides. A ratio or a difference is taken within a run, and its median decides, by the\n\
        interval in which it lies with 95 % confidence (the sign test's, for each line by itself): a limit within it is\n\
        *undecided*, and so is what fewer than six runs say. A drain that fails misses every requirement of drains. The\n\
        number of runs is fixed before the first.\n\
        Drain and baseline alike begin when the machine has come to rest after the node's pods came up. The API server\n\
        runs with `GOGC=500`: what filling the nodes leaves behind is collected seldom, not in the midst of two drains\n\
        in five. kwok, the controllers and the scheduler run with `nice -n 10`: what answers a drain goes before what\n\
        hears of it. In a cluster kubelets have processors of their own; the other two may share the API server's.\n"
    )
}

/// The median, the least and the most.
fn milliseconds(durations: &[Duration]) -> String {
    let digits = usize::from(median(durations) < Duration::from_millis(100));
    let [middle, low, high] = [median(durations), least(durations), most(durations)].map(ms);
    format!("{middle:.digits$} ({low:.digits$} to {high:.digits$})")
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
