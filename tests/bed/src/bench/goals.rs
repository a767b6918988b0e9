//! What was wanted, and whether it came true. A count is judged by its worst run, a time by the
//! median of ratios or differences within a run: where that median is uncertain and the limit lies
//! in its interval, nothing is claimed.

use std::fmt::Display;

use super::drain::Drain;
use super::results::{Results, Round};
use super::{FAR, PODS};
use crate::measure::goal::{Goal, Verdict};
use crate::measure::statistics::{in_words, least, most};

/// The claim, then the list, then the first eviction.
const OPENING: [&str; 3] = ["patch nodes", "list pods", "create pods/eviction"];
const MORE_REQUESTS_THAN_PODS: usize = 5;
const ROUND_TRIPS: u32 = 8;
const TIMES_THE_FLOOR: f64 = 1.25;
const TIMES_WARM: f64 = 2.0;
const ZIPPED_MB: f64 = 5.0;
const PEAK_MIB: f64 = 24.0;

pub(super) fn goals(results: &Results) -> Vec<Goal> {
    let drains: Vec<&Drain> = results.rounds.iter().flat_map(|round| [&round.near.drain, &round.far.drain]).collect();
    let mut goals = counts(&drains);
    goals.extend(times(results));
    goals.extend(sizes(results, &drains));
    goals
}

fn counts(drains: &[&Drain]) -> Vec<Goal> {
    let openings: Vec<Vec<String>> = drains.iter().map(|drain| drain.opening()).collect();
    let other = openings.iter().find(|opening| *opening != &OPENING);
    vec![
        exactly("warm, the private DNS name is right: EC2 calls", 1, drains, |drain| drain.calls_of("ec2")),
        exactly("EKS calls", 0, drains, |drain| drain.calls_of("eks")),
        Goal {
            what: "the first requests to the API server".to_owned(),
            wanted: "claim, list, eviction".to_owned(),
            found: other.map_or_else(|| "claim, list, eviction".to_owned(), |opening| opening.join(", ")),
            verdict: Verdict::of(other.is_none()),
        },
        requests(drains),
        exactly("TCP connections to the API server", 1, drains, |drain| drain.connections),
        exactly("TLS handshakes with it", 1, drains, |drain| drain.client_hellos),
    ]
}

fn times(results: &Results) -> Vec<Goal> {
    let cost = of_all(&results.rounds, Round::far_costs_ms);
    let most_ms = (ROUND_TRIPS * FAR).as_secs_f64() * 1e3;
    let far_ms = FAR.as_millis();
    let mut goals = vec![Goal {
        what: format!("what {far_ms} ms of round trip add from notice to last eviction"),
        wanted: format!("at most {ROUND_TRIPS} × {far_ms} = {most_ms:.0} ms"),
        found: in_words(&cost, 0, " ms"),
        verdict: Verdict::at_most(most_ms, &cost),
    }];
    for (turns, how_far) in [
        (results.rounds.iter().map(|round| &round.near).collect::<Vec<_>>(), "no delay".to_owned()),
        (results.rounds.iter().map(|round| &round.far).collect(), format!("+{far_ms} ms")),
    ] {
        let what = format!("from the notice to the last eviction, against the floor, {how_far}");
        goals.push(ratio(what, TIMES_THE_FLOOR, &of_all(&turns, |turn| turn.against_the_floor())));
    }
    let colds = of_all(&results.claims, |claims| claims.cold.as_secs_f64() / claims.warm.as_secs_f64());
    goals.push(ratio(format!("cold: start to claim, against warm: notice to claim, +{far_ms} ms"), TIMES_WARM, &colds));
    goals
}

fn sizes(results: &Results, drains: &[&Drain]) -> Vec<Goal> {
    let zipped = in_millions(results.size.zipped);
    let peak = drains.iter().map(|drain| drain.peak_memory).max().map_or(0.0, in_mib);
    vec![
        Goal {
            what: "the package, zipped".to_owned(),
            wanted: format!("at most {ZIPPED_MB} MB"),
            found: format!("{zipped:.2} MB"),
            verdict: Verdict::of(zipped <= ZIPPED_MB),
        },
        Goal {
            what: format!("peak memory of a drain of {PODS} pods"),
            wanted: format!("at most {PEAK_MIB} MiB"),
            found: format!("{peak:.1} MiB"),
            verdict: Verdict::of(peak <= PEAK_MIB),
        },
    ]
}

fn exactly<N: PartialOrd + Copy + Display>(
    what: &str,
    wanted: N,
    drains: &[&Drain],
    count: impl Fn(&Drain) -> N,
) -> Goal {
    let counts: Vec<N> = drains.iter().map(|drain| count(drain)).collect();
    let verdict = Verdict::of(counts.iter().all(|count| *count == wanted));
    Goal { what: what.to_owned(), wanted: wanted.to_string(), found: spread(&counts), verdict }
}

/// With the watches among them: an API server without processor time to spare ends a watch as
/// unresponsive, and each has to be begun anew.
fn requests(drains: &[&Drain]) -> Goal {
    let limit = PODS + MORE_REQUESTS_THAN_PODS;
    let requests = of_all(drains, |drain| drain.requests.len());
    let watches = of_all(drains, |drain| drain.requests.iter().filter(|request| request.verb == "watch").count());
    Goal {
        what: format!("requests for a node of {PODS} pods"),
        wanted: format!("at most {limit}"),
        found: format!("{}, of them watches: {}", spread(&requests), spread(&watches)),
        verdict: Verdict::of(most(&requests) <= limit),
    }
}

fn ratio(what: String, limit: f64, ratios: &[f64]) -> Goal {
    Goal {
        what,
        wanted: format!("at most {limit} ×"),
        found: in_words(ratios, 2, ""),
        verdict: Verdict::at_most(limit, ratios),
    }
}

/// One number if all are equal.
fn spread<N: PartialOrd + Copy + Display>(counts: &[N]) -> String {
    let (least, most) = (least(counts), most(counts));
    if least == most { least.to_string() } else { format!("{least} to {most}") }
}

pub(super) fn of_all<T, V>(all: &[T], value: impl Fn(&T) -> V) -> Vec<V> {
    all.iter().map(value).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a file has fewer bytes than would lose one")]
pub(super) fn in_millions(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "a process has fewer bytes than would lose one")]
fn in_mib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_are_equal_are_one_number() {
        assert_eq!(spread(&[3, 3, 3]), "3");
        assert_eq!(spread(&[4, 3, 5]), "3 to 5");
    }
}
