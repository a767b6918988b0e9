//! What one drain came to: pure, from the requests that the API server wrote down.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use spillway_bed::audit::Request;
use spillway_bed::usage::Usage;

use crate::measure::micros;

/// From the spot notice to the end of the instance.
pub(super) const SPOT_WINDOW: Duration = Duration::from_mins(2);

/// One tool's drain of all nodes of a case, as it was seen from outside.
#[derive(Debug)]
pub(super) struct Drained {
    /// The notice, however the tool gets it.
    pub(super) begin: Timestamp,
    pub(super) end: Timestamp,
    /// In the order in which the API server received them.
    pub(super) requests: Vec<Request>,
    /// Of each process.
    pub(super) usage: Vec<Usage>,
}

/// The times are from the notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Figures {
    #[serde(rename = "first_cordon_us", with = "micros::option")]
    pub(super) first_cordon: Option<Duration>,
    /// Only when every node was cordoned.
    #[serde(rename = "last_cordon_us", with = "micros::option")]
    pub(super) last_cordon: Option<Duration>,
    /// To the last answer, only when every pod was evicted.
    #[serde(rename = "last_eviction_us", with = "micros::option")]
    pub(super) last_eviction: Option<Duration>,
    #[serde(rename = "end_us", with = "micros")]
    pub(super) end: Duration,
    pub(super) cordoned_in_window: usize,
    pub(super) evicted_in_window: usize,
    /// Requests before the first cordon.
    pub(super) before_cordon: usize,
    /// Requests that name a pod: evictions, deletions, looks whether it has gone.
    pub(super) for_pods: usize,
    /// All others.
    pub(super) beside: usize,
    /// Of all processes.
    #[serde(rename = "processor_time_us", with = "micros")]
    pub(super) processor_time: Duration,
    /// Of the largest process, in bytes.
    pub(super) peak_memory: u64,
}

impl Figures {
    pub(super) fn of(drained: &Drained, nodes: usize, pods: usize) -> Self {
        let Drained { begin, end, requests, usage } = drained;
        let cordons = firsts(*begin, requests.iter().filter(|request| is_cordon(request)));
        let evictions = firsts(*begin, requests.iter().filter(|request| is_eviction(request)));
        let last_of_all = |times: &[Duration], wanted| times.last().copied().filter(|_| times.len() >= wanted);
        let in_window = |times: &[Duration]| times.iter().filter(|time| **time <= SPOT_WINDOW).count();
        let for_pods = requests.iter().filter(|request| request.resource == "pods" && !request.name.is_empty()).count();
        Self {
            first_cordon: cordons.first().copied(),
            last_cordon: last_of_all(&cordons, nodes),
            last_eviction: last_of_all(&evictions, pods),
            end: since(*begin, *end),
            cordoned_in_window: in_window(&cordons),
            evicted_in_window: in_window(&evictions),
            before_cordon: requests.iter().take_while(|request| !is_cordon(request)).count(),
            for_pods,
            beside: requests.len() - for_pods,
            processor_time: usage.iter().map(|usage| usage.processor_time).sum(),
            peak_memory: usage.iter().map(|usage| usage.peak_memory).max().unwrap_or(0),
        }
    }
}

/// How many pods have been evicted.
pub(super) fn evicted(requests: &[Request]) -> usize {
    firsts(Timestamp::UNIX_EPOCH, requests.iter().filter(|request| is_eviction(request))).len()
}

/// When each object was first answered, in order: a second cordon, or eviction, of the same adds nothing.
fn firsts<'a>(begin: Timestamp, requests: impl Iterator<Item = &'a Request>) -> Vec<Duration> {
    let mut answered: BTreeMap<&str, Timestamp> = BTreeMap::new();
    for request in requests {
        if let Some(done) = request.done {
            let first = answered.entry(&request.name).or_insert(done);
            *first = done.min(*first);
        }
    }
    let mut times: Vec<Duration> = answered.into_values().map(|done| since(begin, done)).collect();
    times.sort_unstable();
    times
}

/// Every tool cordons by a patch, and none patches the node before.
fn is_cordon(request: &Request) -> bool {
    request.verb == "patch" && request.resource == "nodes" && request.code == Some(200)
}

fn is_eviction(request: &Request) -> bool {
    request.subresource == "eviction" && request.code == Some(201)
}

fn since(begin: Timestamp, end: Timestamp) -> Duration {
    end.duration_since(begin).try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{self, BEGIN};

    fn at(seconds: i64) -> Timestamp {
        BEGIN + jiff::SignedDuration::from_secs(seconds)
    }

    /// Received and answered in that second.
    fn request(verb: &str, resource: &str, name: &str, code: u16, done_s: i64) -> Request {
        test_support::request(verb, resource, name, code, done_s * 1000..done_s * 1000)
    }

    fn figures(requests: Vec<Request>, nodes: usize, pods: usize) -> Figures {
        Figures::of(&Drained { begin: BEGIN, end: at(300), requests, usage: Vec::new() }, nodes, pods)
    }

    #[test]
    fn each_node_and_pod_counts_once_and_only_when_it_went_well() {
        let figures = figures(
            vec![
                request("list", "nodes", "", 200, 1),
                request("patch", "nodes", "one", 422, 2),
                request("patch", "nodes", "one", 200, 3),
                request("patch", "nodes", "one", 200, 9),
                request("patch", "nodes", "two", 200, 4),
                request("create", "pods/eviction", "a", 429, 5),
                request("create", "pods/eviction", "a", 201, 6),
                request("get", "pods", "a", 404, 7),
                request("create", "pods/eviction", "b", 201, 121),
            ],
            2,
            2,
        );
        let s = Duration::from_secs;
        assert_eq!((figures.first_cordon, figures.last_cordon), (Some(s(3)), Some(s(4))));
        assert_eq!((figures.last_eviction, figures.end), (Some(s(121)), s(300)));
        assert_eq!((figures.cordoned_in_window, figures.evicted_in_window), (2, 1));
        assert_eq!((figures.before_cordon, figures.for_pods, figures.beside), (2, 4, 5));
    }

    #[test]
    fn a_drain_that_left_something_has_no_last_time() {
        let figures = figures(
            vec![request("patch", "nodes", "one", 200, 3), request("create", "pods/eviction", "a", 201, 6)],
            2,
            2,
        );
        assert_eq!((figures.first_cordon, figures.last_cordon), (Some(Duration::from_secs(3)), None));
        assert_eq!(figures.last_eviction, None);
    }
}
