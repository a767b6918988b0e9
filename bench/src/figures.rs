//! Figures of one drain, from the API server's requests and the AWS side's calls. Pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use spillway_bed::audit::Request;
use spillway_bed::aws::Call;
use spillway_bed::usage::Usage;

use crate::case::Case;

/// Seconds from the spot notice to the end of the instance.
pub(crate) const SPOT_WINDOW_S: f64 = 120.0;

/// Observation of a drain of all nodes of a case.
#[derive(Debug, Default)]
pub(crate) struct Drained {
    /// Requests since the notice, in the order in which the API server received them.
    pub(crate) requests: Vec<Request>,
    pub(crate) calls: Vec<Call>,
    /// Usage of each process.
    pub(crate) usage: Vec<Usage>,
    /// Notices that did not end as *drained*.
    pub(crate) failed: usize,
    pub(crate) traffic: Traffic,
}

/// Traffic through the proxy before the API server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) connections: u64,
    pub(crate) client_hellos: u64,
    /// Both ways, as TLS has them.
    pub(crate) bytes: u64,
}

/// Figures of a drain. Times are seconds since the notice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) first_cordon_s: Option<f64>,
    /// Set when every node was cordoned.
    pub(crate) last_cordon_s: Option<f64>,
    /// To the last answer; set when every pod was evicted.
    pub(crate) last_eviction_s: Option<f64>,
    pub(crate) end_s: f64,
    pub(crate) cordoned_in_window: usize,
    pub(crate) evicted_in_window: usize,
    /// First three requests.
    pub(crate) opening: Vec<String>,
    /// Requests that name a pod: evictions, deletions, reads.
    pub(crate) for_pods: usize,
    pub(crate) other_requests: usize,
    /// Requests that the API server answered with 429.
    pub(crate) refused: usize,
    pub(crate) traffic: Traffic,
    /// Calls by action. Throttled calls count.
    pub(crate) calls: BTreeMap<String, usize>,
    pub(crate) throttled_calls: usize,
    pub(crate) processor_s: f64,
    /// Bytes of the largest process.
    pub(crate) peak_memory: u64,
    pub(crate) failed: usize,
}

impl Figures {
    pub(crate) fn of(drained: &Drained, case: Case, begin: Timestamp, end: Timestamp) -> Self {
        let Drained { requests, calls, usage, failed, traffic } = drained;
        let cordons = first_answers(begin, requests.iter().filter(|request| is_cordon(request)));
        let evictions = first_answers(begin, requests.iter().filter(|request| is_eviction(request)));
        let last_of_all = |times: &[f64], wanted| times.last().copied().filter(|_| times.len() >= wanted);
        let in_window = |times: &[f64]| times.iter().filter(|time| **time <= SPOT_WINDOW_S).count();
        let for_pods = requests.iter().filter(|request| request.resource == "pods" && !request.name.is_empty()).count();
        Self {
            first_cordon_s: cordons.first().copied(),
            last_cordon_s: last_of_all(&cordons, case.nodes),
            last_eviction_s: last_of_all(&evictions, case.nodes * case.pods),
            end_s: seconds(begin, end),
            cordoned_in_window: in_window(&cordons),
            evicted_in_window: in_window(&evictions),
            opening: requests.iter().take(3).map(in_words).collect(),
            for_pods,
            other_requests: requests.len() - for_pods,
            refused: requests.iter().filter(|request| request.code == Some(429)).count(),
            traffic: *traffic,
            calls: by_action(calls),
            throttled_calls: calls.iter().filter(|call| matches!(call.status, 429 | 503)).count(),
            processor_s: usage.iter().map(|usage| usage.processor_time.as_secs_f64()).sum(),
            peak_memory: usage.iter().map(|usage| usage.peak_memory).max().unwrap_or(0),
            failed: *failed,
        }
    }

    pub(crate) fn calls_of(&self, action: &str) -> usize {
        self.calls.get(action).copied().unwrap_or(0)
    }
}

/// Number of distinct pods that were evicted.
pub(crate) fn evicted(requests: &[Request]) -> usize {
    first_answers(Timestamp::UNIX_EPOCH, requests.iter().filter(|request| is_eviction(request))).len()
}

/// Time of the first answer for each object, sorted: a repeated cordon or eviction adds nothing.
fn first_answers<'a>(begin: Timestamp, requests: impl Iterator<Item = &'a Request>) -> Vec<f64> {
    let mut answered: BTreeMap<&str, Timestamp> = BTreeMap::new();
    for request in requests {
        if let Some(done) = request.done {
            let first = answered.entry(&request.name).or_insert(done);
            *first = done.min(*first);
        }
    }
    let mut times: Vec<f64> = answered.into_values().map(|done| seconds(begin, done)).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// Every tool cordons by a patch, and none patches the node before.
fn is_cordon(request: &Request) -> bool {
    request.verb == "patch" && request.resource == "nodes" && request.code == Some(200)
}

fn is_eviction(request: &Request) -> bool {
    request.subresource == "eviction" && request.code == Some(201)
}

fn in_words(request: &Request) -> String {
    let slash = if request.subresource.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", request.verb, request.resource, request.subresource)
}

fn by_action(calls: &[Call]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for call in calls {
        *counts.entry(call.action.clone()).or_default() += 1;
    }
    counts
}

fn seconds(begin: Timestamp, end: Timestamp) -> f64 {
    end.duration_since(begin).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    const BEGIN: Timestamp = Timestamp::constant(1_790_000_000, 0);

    fn at(seconds: i64) -> Timestamp {
        BEGIN + SignedDuration::from_secs(seconds)
    }

    /// Received and answered in that second.
    fn request(verb: &str, resource: &str, name: &str, code: u16, second: i64) -> Request {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        Request {
            verb: verb.to_owned(),
            uri: String::new(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
            code: Some(code),
            received: at(second),
            done: Some(at(second)),
        }
    }

    fn figures(requests: Vec<Request>) -> Figures {
        Figures::of(&Drained { requests, ..Drained::default() }, Case::new(2, 1), BEGIN, at(300))
    }

    #[test]
    fn node_and_pod_count_once_and_only_on_success() {
        let figures = figures(vec![
            request("patch", "nodes", "one", 422, 2),
            request("patch", "nodes", "one", 200, 3),
            request("list", "pods", "", 200, 3),
            request("patch", "nodes", "one", 200, 9),
            request("patch", "nodes", "two", 200, 4),
            request("create", "pods/eviction", "a", 429, 5),
            request("create", "pods/eviction", "a", 201, 6),
            request("get", "pods", "a", 404, 7),
            request("create", "pods/eviction", "b", 201, 121),
        ]);
        assert_eq!((figures.first_cordon_s, figures.last_cordon_s), (Some(3.0), Some(4.0)));
        assert_eq!((figures.last_eviction_s, figures.end_s), (Some(121.0), 300.0));
        assert_eq!((figures.cordoned_in_window, figures.evicted_in_window), (2, 1));
        assert_eq!((figures.for_pods, figures.other_requests, figures.refused), (4, 5, 1));
        assert_eq!(figures.opening, ["patch nodes", "patch nodes", "list pods"]);
    }

    #[test]
    fn drain_with_leftovers_has_no_last_time() {
        let requests = vec![request("patch", "nodes", "one", 200, 3), request("create", "pods/eviction", "a", 201, 6)];
        let figures = figures(requests);
        assert_eq!((figures.first_cordon_s, figures.last_cordon_s), (Some(3.0), None));
        assert_eq!(figures.last_eviction_s, None);
    }
}
