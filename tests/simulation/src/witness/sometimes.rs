//! Counters of events: laws about events that never happen are never broken. A run of 2,000 seeds fails if one of `SOMETIMES` never
//! happens, except rare ones; a run of 10,000 fails for rare ones too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use spillway_contract::node::is_cordoned;

use super::past::claim;
use super::{Facts, Verdict, Witness};
use crate::fact::{Fact, Method};
use crate::lambda::Ending;

/// Occurrences of each event.
pub type Counts = BTreeMap<String, u64>;

#[derive(Debug, Default)]
pub(super) struct Sometimes {
    /// Request ids of Lambda, and notices, so far.
    known: BTreeSet<String>,
    /// Clusters with notices.
    noticed: BTreeSet<usize>,
}

impl Witness for Sometimes {
    fn observe(&mut self, fact: &Fact, facts: &Facts<'_>, verdict: &mut Verdict) {
        let mut count = |event: String| verdict.count(event);
        match fact {
            Fact::Interruption { cause, .. } => count(first_word("cause", cause)),
            Fact::Person { command, .. } => count(first_word("person", command)),
            Fact::AttemptBegan { id, request, .. } => {
                let attempt = facts.lambda.attempt(*id);
                let notice = format!("notice {} {}", attempt.notice()["id"], attempt.is_first());
                let (is_new, is_new_notice) = (self.known.insert(request.clone()), self.known.insert(notice));
                count("invocation".to_owned());
                if facts.node(*id).is_some_and(|node| self.noticed.insert(node.cluster)) && self.noticed.len() > 1 {
                    count("world with notices in both clusters".to_owned());
                }
                match (is_new, is_new_notice || !attempt.is_first()) {
                    (false, _) => count("event tried again".to_owned()),
                    (true, false) => count("event delivered twice".to_owned()),
                    (true, true) => {}
                }
            }
            Fact::GivenUp { .. } => count("event given up".to_owned()),
            Fact::AttemptEnded { ending: Ending::Killed, .. } => count("invocation killed".to_owned()),
            Fact::ActionOver { result, .. } => count(format!("hook {result:?}")),
            Fact::ScheduleFired { .. } => count("schedule fired".to_owned()),
            Fact::LeaveRequested { request, .. } => {
                let clamped = if request.grace_s.is_some() { " with less grace" } else { "" };
                let method = if request.method == Method::Evict { "evict" } else { "delete" };
                count(format!("request {method}{clamped}"));
            }
            Fact::NodePatched { node, before, after, .. } => {
                if facts.clusters.has_namesake(node) {
                    count("node patched that has a namesake in the other cluster".to_owned());
                }
                changes(before, after).into_iter().for_each(count);
            }
            Fact::Quiet { .. } if facts.plan.cluster_count() > 1 => {
                count("world of two clusters".to_owned());
                if facts.plan.outages.iter().any(|outage| outage.cluster.is_some()) {
                    count("world with an outage in one of two clusters".to_owned());
                }
            }
            Fact::ReceiptWritten { receipt, .. } => of_receipt(receipt).into_iter().for_each(count),
            _ => {}
        }
    }
}

/// Name of a variant.
fn first_word(of: &str, variant: &impl std::fmt::Debug) -> String {
    let variant = format!("{variant:?}");
    format!("{of} {}", variant.split(' ').next().unwrap_or_default())
}

/// Changes of a node by a patch.
pub(crate) fn changes(before: &Value, after: &Value) -> Vec<String> {
    let taints = |node: &Value| node["spec"]["taints"].as_array().map_or(0, Vec::len);
    let is_out = |node: &Value| node["spec"]["taints"].to_string().contains("out-of-service");
    let claims = (claim(before), claim(after));
    let kind = match claims {
        (None, Some(_)) => "claimed",
        (Some(before), Some(after)) if before != after => "claim taken over",
        (Some(_), None) => "given back",
        (None, None) | (Some(_), Some(_)) => "patched",
    };
    let cordoned = match (is_cordoned(before), is_cordoned(after)) {
        (false, true) if claims.0.is_some() => Some("cordoned again"),
        (true, true) if claims.0.is_none() => Some("claimed though cordoned"),
        (true, false) => Some("uncordoned"),
        _ => None,
    };
    let tainted = (taints(before) < taints(after)).then_some("tainted");
    let out = (!is_out(before) && is_out(after)).then_some("out of service");
    let all = [Some(kind), cordoned, tainted, out].into_iter().flatten();
    all.map(|change| format!("node {change}")).collect()
}

fn of_receipt(receipt: &Value) -> Vec<String> {
    let mut events = Vec::new();
    let mut field = |name: &str, value: &Value| events.extend(value.as_str().map(|value| format!("{name} {value}")));
    field("ending", &receipt["ending"]);
    field("decision", &receipt["decision"]);
    field("hook", &receipt["hook"]["state"]);
    field("hook result", &receipt["hook"]["result"]);
    events.extend(receipt["not_cordoned"].as_str().map(|_| "not cordoned".to_owned()));
    events.extend(receipt["earlier"].as_array().map(|_| "drain of several invocations".to_owned()));
    for pod in receipt["pods"].as_array().into_iter().flatten() {
        events.push(format!("fate {}", pod["fate"].as_str().unwrap_or_default()));
        let answers = pod["answers"].as_object().into_iter().flatten();
        events.extend(answers.map(|(answer, _)| format!("answer {answer}")));
    }
    events
}

/// Events that happen sometimes: each more than twenty times in 10,000 seeds.
#[cfg(test)]
const SOMETIMES: &str = "\
answer: blocked-by-budget, blocked-by-several-budgets, deleted, evicted, gone, no-answer, server-error, throttled
answer: unauthorized
cause: Maintenance, Rebalance, ShutDown, Spot, Stop, Terminate, WarmPool
decision: await-ready, drain, ignore, out-of-service, postpone, uncordon
drain: of several invocations
ending: continued, done, drained, failed, ignored, joined
event: delivered twice, given up, tried again
fate: clamped, clean, forced, lost, remaining, returned, stayed, unconfirmed, would-be-blocked, would-leave
fault: Api AnswerLost, Api Denied, Api Hangs, Api Refused, Api RequestLost, Api Slow, Api Unauthorized, Api Webhook
fault: Aws AnswerLost, Aws Denied, Aws Hangs, Aws Refused, Aws RequestLost, Aws Slow
hook: Completed, Expired, already-over, completed, held, left, result ABANDON, result CONTINUE
invocation: killed
node: claim taken over, claimed, claimed though cordoned, cordoned again, given back, out of service, patched
node: patched that has a namesake in the other cluster, tainted, uncordoned
not: cordoned
person: Cordon, Delete, Label, OptOut, Recordon, Replace, Taint, Uncordon
process: knew its cluster from before, served both clusters
request: delete, delete with less grace, evict, evict with less grace
schedule: fired
watch: ended, reset
world: of two clusters, with an outage in one of two clusters, with notices in both clusters";

/// Counters of all events that happen sometimes, at zero.
#[cfg(test)]
pub(crate) fn never() -> Counts {
    let events = |line: &'static str| {
        let (of, events) = line.split_once(": ").expect("a line has a prefix");
        events.split(", ").map(move |event| (format!("{of} {event}"), 0))
    };
    SOMETIMES.lines().flat_map(events).collect()
}
