//! The page: what was wanted and found, the times behind it, and how they were taken.

use std::time::Duration;

use jiff::Timestamp;

use super::build;
use super::goals::{goals, in_millions, of_all};
use super::machine::{self, Machine};
use super::programs::Programs;
use super::results::{Results, Round, Turn};
use super::starts::Starts;
use super::{FAR, PODS};
use crate::measure::goal;
use crate::measure::statistics::{in_words, least, median, most};

pub(super) fn page(results: &Results, programs: &Programs, machine: &Machine) -> String {
    let parts =
        [head(results, programs, machine), goal::table(&goals(results)), drains(results), start(results), how()];
    parts.join("\n")
}

fn head(results: &Results, programs: &Programs, machine: &Machine) -> String {
    format!(
        "# How fast and how small\n\
        \n\
        Written by `make bench`, which measures it all anew; nothing here is typed by hand.\n\
        \n\
        * {date}, {runs} runs; a number stands for the median, in brackets the least and the most\n\
        * {machine}; {quiet}; {rests}\n\
        * measured: {drain}, {binary:.1} MB\n",
        date = Timestamp::now().strftime("%Y-%m-%d"),
        runs = results.rounds.len(),
        machine = machine.in_words(),
        quiet = machine::quiet_in_words(&results.busy),
        rests = results.rests.in_words(),
        drain = build::in_words(&programs.drain),
        binary = in_millions(results.size.binary),
    )
}

fn drains(results: &Results) -> String {
    let far = FAR.as_millis();
    let mut text = format!(
        "## The times of a drain of {PODS} pods that exit at once\n\
        \n\
        In milliseconds, from the event handed to a warm function. *Floor*: a bare loop that makes one HTTP/2\n\
        connection and posts the same evictions over it, to its last answer, in turn with the drains.\n\
        \n\
        | | no delay | +{far} ms |\n| --- | --- | --- |\n",
    );
    let near_and_far = |what: &str, cell: &dyn Fn(fn(&Round) -> &Turn) -> String| {
        format!("| {what} | {} | {} |\n", cell(|round| &round.near), cell(|round| &round.far))
    };
    let mut row = |what: &str, value: fn(&Turn) -> Duration| {
        text += &near_and_far(what, &|turn| milliseconds(&of_all(&results.rounds, |round| value(turn(round)))));
    };
    row("claim received", |turn| turn.drain.to_claim);
    row("first eviction received", |turn| turn.drain.evicted().to_first);
    row("last eviction answered", |turn| turn.drain.evicted().to_last_answer);
    row("pods gone, answer given", |turn| turn.drain.to_end);
    row("of it, claim received to last eviction answered", |turn| turn.drain.since_claim());
    row("floor", |turn| turn.floor.with_connection);
    row("floor, had it been connected before", |turn| turn.floor.evictions);
    let mut row = |what: &str, value: fn(&Turn) -> f64| {
        text += &near_and_far(what, &|turn| in_words(&of_all(&results.rounds, |round| value(turn(round))), 2, ""));
    };
    row("last eviction, × a floor that had been connected before", Turn::against_a_connected_floor);
    row("from the claim on, × such a floor", Turn::claim_against_a_connected_floor);
    text
}

fn start(results: &Results) -> String {
    let Results { starts, claims, .. } = results;
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
        `make bench`, with what `make` itself needs; about five minutes when all is built. The function is driven over\n\
        the Lambda Runtime API by the test bed, frozen between events. The API server is a real kube-apiserver with\n\
        aws-iam-authenticator; it checks a token once, as on EKS, so the first request of every drain and of every\n\
        floor pays for that. kwok plays the kubelet. Round trips are added by a TCP proxy on the way to the API server\n\
        alone. AWS is played by moto, so what EC2 takes in life is not in it.\n\
        \n\
        Requests and their times come from the API server's audit log, calls from the AWS side's journal, connections\n\
        and TLS handshakes from the proxy, memory from the kernel (`VmHWM`). Counts are of the drains of {PODS} pods,\n\
        and the worst run decides. A ratio or a difference is taken within a run, and its median decides, by the\n\
        interval in which it lies with 95 % confidence (*surely*; the sign test's): a limit within it is *undecided*, and\n\
        so is what fewer than six runs say.\n\
        Drain and floor alike begin when the machine has come to rest after the node's pods came up. The API server\n\
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
