//! One drain, as the API server's audit log and the AWS side's journal saw it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use spillway_bed::BedError;
use spillway_bed::audit::Request;
use spillway_bed::aws::Call;

use super::fixture::{BenchFixture, FullNode};
use crate::measure::micros;

/// The last pod goes at once, but kwok is late when many go together.
const LIMIT: Duration = Duration::from_mins(1);

/// What a drain cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Drain {
    /// From the notice (of a cold start: from the execution of the binary) to the API server's
    /// first sight of the claim.
    #[serde(rename = "to_claim_us", with = "micros")]
    pub(super) to_claim: Duration,
    /// Only of a node with pods.
    pub(super) evictions: Option<Evictions>,
    /// To the function's answer.
    #[serde(rename = "to_end_us", with = "micros")]
    pub(super) to_end: Duration,
    /// The first three requests to the API server, in the order in which it received them.
    pub(super) opening: Vec<String>,
    /// To the API server.
    pub(super) requests: usize,
    /// Of them.
    pub(super) watches: usize,
    /// How often each service of AWS was called.
    pub(super) calls: BTreeMap<String, usize>,
    pub(super) connections: u64,
    pub(super) client_hellos: u64,
    /// The most memory that the process has had in use so far, in bytes.
    pub(super) peak_memory: u64,
}

/// When the evictions came and were answered, from the same beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Evictions {
    #[serde(rename = "to_first_us", with = "micros")]
    pub(super) to_first: Duration,
    #[serde(rename = "to_last_answer_us", with = "micros")]
    pub(super) to_last_answer: Duration,
}

/// By a process that has drained before.
pub(super) async fn warm(fixture: &mut BenchFixture, node: &FullNode, distance: Duration) -> Result<Drain, BedError> {
    measure(fixture, node, distance).await
}

/// By a process that is started for it.
pub(super) async fn cold(fixture: &mut BenchFixture, node: &FullNode, distance: Duration) -> Result<Drain, BedError> {
    fixture.lambda.recycle();
    measure(fixture, node, distance).await
}

async fn measure(fixture: &mut BenchFixture, node: &FullNode, distance: Duration) -> Result<Drain, BedError> {
    fixture.proxy.set_round_trip(distance);
    let before = (fixture.proxy.connections(), fixture.proxy.client_hellos());
    let notice = fixture.notice(node).await?;

    let outcome = fixture.lambda.invoke(notice).await;

    let connections = fixture.proxy.connections() - before.0;
    let client_hellos = fixture.proxy.client_hellos() - before.1;
    outcome.drained()?;
    let peak_memory = fixture.lambda.peak_memory().map_err(BedError::io("read the function's peak memory"))?;
    let begin = outcome.init.map_or(outcome.started, |init| init.started);

    let since = |requests: &[Request]| -> Vec<Request> {
        requests.iter().filter(|request| request.received >= outcome.started).cloned().collect()
    };
    let pods = node.pods.len();
    let all_answered = |requests: &[Request]| answered(&since(requests)) == pods;
    let requests = since(&fixture.audit.wait_until("all evictions in the audit log", LIMIT, all_answered).await?);
    let calls = fixture.world.aws_side().calls(Some(fixture.lambda.access_key_id())).await?;
    let no_claim = || BedError::NotDrained { answer: "drained; no claim is in the audit log".to_owned() };
    Ok(Drain {
        to_claim: claim(begin, &requests).ok_or_else(no_claim)?,
        evictions: evictions(begin, &requests),
        to_end: since_then(begin, outcome.started) + outcome.duration,
        opening: requests.iter().take(3).map(in_words).collect(),
        requests: requests.len(),
        watches: requests.iter().filter(|request| request.verb == "watch").count(),
        calls: by_service(calls.iter().filter(|call| call.at >= seconds(outcome.started))),
        connections,
        client_hellos,
        peak_memory,
    })
}

fn is_eviction(request: &Request) -> bool {
    request.subresource == "eviction"
}

fn answered(requests: &[Request]) -> usize {
    requests.iter().filter(|request| is_eviction(request) && request.done.is_some()).count()
}

fn claim(begin: Timestamp, requests: &[Request]) -> Option<Duration> {
    let claim = requests.iter().find(|request| request.verb == "patch" && request.resource == "nodes")?;
    Some(since_then(begin, claim.received))
}

/// The requests come in the order in which they were received.
pub(super) fn evictions(begin: Timestamp, requests: &[Request]) -> Option<Evictions> {
    let first = requests.iter().find(|request| is_eviction(request))?.received;
    let last_answer =
        requests.iter().filter(|request| is_eviction(request)).filter_map(|request| request.done).max()?;
    Some(Evictions { to_first: since_then(begin, first), to_last_answer: since_then(begin, last_answer) })
}

fn in_words(request: &Request) -> String {
    let slash = if request.subresource.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", request.verb, request.resource, request.subresource)
}

fn by_service<'a>(calls: impl Iterator<Item = &'a Call>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for call in calls {
        *counts.entry(call.service.clone()).or_default() += 1;
    }
    counts
}

fn since_then(begin: Timestamp, end: Timestamp) -> Duration {
    end.duration_since(begin).try_into().unwrap_or_default()
}

/// As the AWS side's journal tells time.
#[expect(clippy::cast_precision_loss, reason = "a microsecond more or less does not matter")]
fn seconds(at: Timestamp) -> f64 {
    at.as_microsecond() as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{BEGIN, request};

    #[test]
    fn the_last_answer_counts_and_not_the_last_request() {
        let requests = [
            request("patch", "nodes", "one", 200, 10..12),
            request("list", "pods", "", 200, 13..14),
            request("create", "pods/eviction", "a", 201, 20..95),
            request("create", "pods/eviction", "b", 201, 21..60),
            request("watch", "pods", "", 200, 22..200),
        ];
        let ms = Duration::from_millis;
        assert_eq!(claim(BEGIN, &requests), Some(ms(10)));
        assert_eq!(evictions(BEGIN, &requests), Some(Evictions { to_first: ms(20), to_last_answer: ms(95) }));
        assert_eq!(answered(&requests), 2);
        assert_eq!(in_words(&requests[2]), "create pods/eviction");
    }

    #[test]
    fn a_node_without_pods_has_no_evictions() {
        let requests = [request("patch", "nodes", "one", 200, 10..12), request("list", "pods", "", 200, 13..14)];
        assert_eq!(evictions(BEGIN, &requests), None);
    }
}
