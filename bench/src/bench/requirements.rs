//! What is required, and whether it came true. A count is judged by its worst run, a time by the
//! median of ratios or differences within a run: where that median is uncertain and the limit lies
//! in its interval, nothing is claimed. A drain that failed misses whatever is required of drains.

use std::fmt::Display;

use super::drain::Drain;
use super::results::{BenchResults, Round};
use super::{FAR, PODS};
use crate::measure::requirement::{Measured, Requirement, Verdict};
use crate::measure::statistics::{least, most};

/// The claim, then the list, then the first eviction.
const OPENING: [&str; 3] = ["patch nodes", "list pods", "create pods/eviction"];
const MORE_REQUESTS_THAN_PODS: usize = 5;
const ROUND_TRIPS: u32 = 8;
const TIMES_THE_BASELINE: f64 = 1.25;
const TIMES_WARM: f64 = 2.0;
const ZIPPED_MB: f64 = 5.0;
const PEAK_MIB: f64 = 24.0;

pub(super) fn requirements(results: &BenchResults) -> Vec<Requirement> {
    let drains: Vec<&Drain> = results.rounds.iter().flat_map(|round| [&round.near.drain, &round.far.drain]).collect();
    let of_drains = counts(&drains).into_iter().chain(times(results)).chain([memory(&drains)]);
    let failed = results.failed.len();
    of_drains.map(|requirement| requirement.unless_failed(failed)).chain([package(results)]).collect()
}

fn counts(drains: &[&Drain]) -> Vec<Requirement> {
    let other = drains.iter().map(|drain| &drain.opening).find(|opening| **opening != OPENING);
    let found = other.map_or_else(|| "claim, list, eviction".to_owned(), |opening| opening.join(", "));
    vec![
        exactly("warm, the private DNS name is right: EC2 calls", 1, drains, |drain| drain.calls_of("ec2")),
        exactly("EKS calls", 0, drains, |drain| drain.calls_of("eks")),
        Requirement {
            what: "the first requests to the API server".to_owned(),
            required: "claim, list, eviction".to_owned(),
            measured: Measured::text(found),
            verdict: Verdict::of(other.is_none()),
            of_baseline: None,
        },
        requests(drains),
        exactly("TCP connections to the API server", 1, drains, |drain| drain.connections),
        exactly("TLS handshakes with it", 1, drains, |drain| drain.client_hellos),
    ]
}

fn times(results: &BenchResults) -> Vec<Requirement> {
    let cost = of_all(&results.rounds, Round::far_costs_ms);
    let most_ms = (ROUND_TRIPS * FAR).as_secs_f64() * 1e3;
    let far_ms = FAR.as_millis();
    let mut requirements = vec![Requirement {
        what: format!("what {far_ms} ms of round trip add from notice to last eviction"),
        required: format!("at most {ROUND_TRIPS} × {far_ms} = {most_ms:.0} ms"),
        measured: Measured::of(&cost, 0, " ms"),
        verdict: Verdict::at_most(most_ms, &cost),
        of_baseline: None,
    }];
    for (turns, how_far) in [
        (results.rounds.iter().map(|round| &round.near).collect::<Vec<_>>(), "no delay".to_owned()),
        (results.rounds.iter().map(|round| &round.far).collect(), format!("+{far_ms} ms")),
    ] {
        let what = format!("from the notice to the last eviction, against the baseline, {how_far}");
        requirements.push(ratio(what, TIMES_THE_BASELINE, &of_all(&turns, |turn| turn.against_baseline())));
    }
    let colds = of_all(&results.claims, |claims| claims.cold.as_secs_f64() / claims.warm.as_secs_f64());
    let what = format!("cold: start to claim, against warm: notice to claim, +{far_ms} ms");
    requirements.push(ratio(what, TIMES_WARM, &colds));
    requirements
}

fn package(results: &BenchResults) -> Requirement {
    let zipped = in_millions(results.size.zipped);
    Requirement {
        what: "the package, zipped".to_owned(),
        required: format!("at most {ZIPPED_MB} MB"),
        measured: Measured::text(format!("{zipped:.2} MB")),
        verdict: Verdict::of(zipped <= ZIPPED_MB),
        of_baseline: None,
    }
}

fn memory(drains: &[&Drain]) -> Requirement {
    let peak = drains.iter().map(|drain| drain.peak_memory).max().map_or(0.0, in_mib);
    Requirement {
        what: format!("peak memory of a drain of {PODS} pods"),
        required: format!("at most {PEAK_MIB} MiB"),
        measured: Measured::text(format!("{peak:.1} MiB")),
        verdict: Verdict::of(peak <= PEAK_MIB),
        of_baseline: None,
    }
}

fn exactly<N: PartialOrd + Copy + Display>(
    what: &str,
    required: N,
    drains: &[&Drain],
    count: impl Fn(&Drain) -> N,
) -> Requirement {
    let counts: Vec<N> = drains.iter().map(|drain| count(drain)).collect();
    let verdict = Verdict::of(counts.iter().all(|count| *count == required));
    let measured = Measured::text(spread(&counts));
    Requirement { what: what.to_owned(), required: required.to_string(), measured, verdict, of_baseline: None }
}

/// With the watches among them: an API server without processor time to spare ends a watch as
/// unresponsive, and each has to be begun again.
fn requests(drains: &[&Drain]) -> Requirement {
    let limit = PODS + MORE_REQUESTS_THAN_PODS;
    let requests = of_all(drains, |drain| drain.requests);
    let watches = of_all(drains, |drain| drain.watches);
    Requirement {
        what: format!("requests for a node of {PODS} pods"),
        required: format!("at most {limit}"),
        measured: Measured::text(format!("{}, of them watches: {}", spread(&requests), spread(&watches))),
        verdict: Verdict::of(most(&requests) <= limit),
        of_baseline: None,
    }
}

fn ratio(what: String, limit: f64, ratios: &[f64]) -> Requirement {
    Requirement {
        what,
        required: format!("at most {limit} ×"),
        measured: Measured::of(ratios, 2, " ×"),
        verdict: Verdict::at_most(limit, ratios),
        of_baseline: None,
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
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::bench::baseline::Baseline;
    use crate::bench::drain::Evictions;
    use crate::bench::results::{Claims, Turn};
    use crate::bench::size::Size;
    use crate::bench::starts::Starts;
    use crate::measure::machine::Rests;
    use crate::measure::report::{self, Report as _};
    use crate::test_support::circumstances;

    fn turn(last_answer_ms: u64) -> Turn {
        let ms = Duration::from_millis;
        let evictions = Evictions { to_first: ms(40), to_last_answer: ms(last_answer_ms) };
        let drain = Drain {
            to_claim: ms(15),
            evictions: Some(evictions),
            to_end: ms(600),
            opening: OPENING.map(str::to_owned).into(),
            requests: 113,
            watches: 1,
            calls: BTreeMap::from([("ec2".to_owned(), 1)]),
            connections: 1,
            client_hellos: 1,
            peak_memory: 14 << 20,
        };
        Turn { drain, baseline: Baseline { evictions: ms(270), with_connection: ms(300) } }
    }

    /// Six runs that meet every requirement.
    fn results() -> BenchResults {
        let ms = Duration::from_millis;
        let start =
            Starts { empty: ms(2), drain: ms(10), one_certificate: ms(5), empty_ends: ms(1), drain_ends: ms(2) };
        BenchResults {
            circumstances: circumstances("make bench RUNS=6"),
            rests: Rests::default(),
            size: Size { binary: 10_200_000, zipped: 3_980_000 },
            starts: vec![start; 30],
            rounds: vec![Round { near: turn(330), far: turn(360), at_share: Some(turn(900).drain) }; 6],
            claims: vec![Claims { cold: ms(80), warm: ms(66) }; 6],
            failed: Vec::new(),
        }
    }

    #[test]
    fn one_failed_drain_misses_every_requirement_of_drains() {
        let mut results = results();
        assert!(requirements(&results).iter().all(|one| one.verdict == Verdict::Met), "{:#?}", requirements(&results));
        results.failed.push("run 7: the node was not drained".to_owned());
        let met: Vec<String> =
            requirements(&results).into_iter().filter(|one| one.verdict == Verdict::Met).map(|one| one.what).collect();
        assert_eq!(met, ["the package, zipped"]);
    }

    #[test]
    fn what_is_kept_renders_the_same_page_with_its_command_and_runs() {
        let results = results();
        let page = report::keep(&results, None).expect("a page");
        assert_eq!(page, results.page());
        assert!(page.contains("Written by `make bench RUNS=6` at commit 0123456789ab"), "{page}");
        assert!(page.contains("\n* 6 runs;"), "{page}");
    }

    #[test]
    fn counts_that_are_equal_are_one_number() {
        assert_eq!(spread(&[3, 3, 3]), "3");
        assert_eq!(spread(&[4, 3, 5]), "3 to 5");
    }
}
