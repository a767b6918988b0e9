//! One drain, as the API server's audit log and the AWS side's journal saw it.

use std::time::Duration;

use jiff::Timestamp;

use super::field::{Field, FullNode};
use crate::audit::Request;
use crate::aws::Call;
use crate::error::BedError;

/// The last pod goes at once, but kwok is late when many go together.
const LIMIT: Duration = Duration::from_mins(1);

/// What a drain cost.
#[derive(Debug)]
pub(super) struct Drain {
    /// From the notice (of a cold start: from the execution of the binary) to the API server's
    /// first sight of the claim.
    pub(super) to_claim: Duration,
    /// Only of a node with pods.
    pub(super) evictions: Option<Evictions>,
    /// To the function's answer.
    pub(super) to_end: Duration,
    pub(super) requests: Vec<Request>,
    pub(super) calls: Vec<Call>,
    pub(super) connections: u64,
    pub(super) client_hellos: u64,
    /// The most memory that the process has had in use so far, in bytes.
    pub(super) peak_memory: u64,
}

/// When the evictions came and were answered, from the same beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Evictions {
    pub(super) to_first: Duration,
    pub(super) to_last_answer: Duration,
}

/// By a process that has drained before.
pub(super) async fn warm(field: &mut Field, node: &FullNode, distance: Duration) -> Result<Drain, BedError> {
    measure(field, node, distance).await
}

/// By a process that is started for it.
pub(super) async fn cold(field: &mut Field, node: &FullNode, distance: Duration) -> Result<Drain, BedError> {
    field.lambda.recycle();
    measure(field, node, distance).await
}

async fn measure(field: &mut Field, node: &FullNode, distance: Duration) -> Result<Drain, BedError> {
    field.proxy.set_round_trip(distance);
    let before = (field.proxy.connections(), field.proxy.client_hellos());
    let notice = field.notice(node).await?;

    let outcome = field.lambda.invoke(notice).await;

    let connections = field.proxy.connections() - before.0;
    let client_hellos = field.proxy.client_hellos() - before.1;
    let peak_memory = field.lambda.peak_memory().map_err(BedError::io("read the function's peak memory"))?;
    let begin = outcome.init.map_or(outcome.started, |init| init.started);
    let failed = |seen: String| BedError::NotMeasured { wanted: "a drain".to_owned(), seen };
    let answer = outcome.result.map_err(|error| failed(error.to_string()))?;
    if answer["ending"] != "drained" {
        return Err(failed(answer.to_string()));
    }

    let since = |requests: &[Request]| -> Vec<Request> {
        requests.iter().filter(|request| request.received >= outcome.started).cloned().collect()
    };
    let pods = node.pods.len();
    let all_answered = |requests: &[Request]| answered(&since(requests)) == pods;
    let requests = since(&field.audit.wait_until("all evictions in the audit log", LIMIT, all_answered).await?);
    let calls = field.world.aws_side().calls(Some(field.lambda.access_key_id())).await?;
    Ok(Drain {
        to_claim: claim(begin, &requests).ok_or_else(|| failed("no claim in the audit log".to_owned()))?,
        evictions: evictions(begin, &requests),
        to_end: since_then(begin, outcome.started) + outcome.duration,
        requests,
        calls: calls.into_iter().filter(|call| call.at >= seconds(outcome.started)).collect(),
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

    const BEGIN: Timestamp = Timestamp::constant(1_790_000_000, 0);

    fn request(verb: &str, resource: &str, subresource: &str, received_ms: i64, done_ms: i64) -> Request {
        let at = |ms| BEGIN + jiff::SignedDuration::from_millis(ms);
        let text = str::to_owned;
        Request {
            user: String::new(),
            user_agent: String::new(),
            verb: text(verb),
            uri: String::new(),
            resource: text(resource),
            subresource: text(subresource),
            namespace: String::new(),
            name: String::new(),
            code: Some(201),
            received: at(received_ms),
            done: Some(at(done_ms)),
        }
    }

    #[test]
    fn the_last_answer_counts_and_not_the_last_request() {
        let requests = [
            request("patch", "nodes", "", 10, 12),
            request("list", "pods", "", 13, 14),
            request("create", "pods", "eviction", 20, 95),
            request("create", "pods", "eviction", 21, 60),
            request("watch", "pods", "", 22, 200),
        ];
        let ms = Duration::from_millis;
        assert_eq!(claim(BEGIN, &requests), Some(ms(10)));
        assert_eq!(evictions(BEGIN, &requests), Some(Evictions { to_first: ms(20), to_last_answer: ms(95) }));
        assert_eq!(answered(&requests), 2);
    }

    #[test]
    fn a_node_without_pods_has_no_evictions() {
        let requests = [request("patch", "nodes", "", 10, 12), request("list", "pods", "", 13, 14)];
        assert_eq!(evictions(BEGIN, &requests), None);
    }
}
